"""torch modules: layers, covariate embedding, backbones, fields. They know nothing of training."""
