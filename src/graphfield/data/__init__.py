"""What goes in: files, frames, roles, the covariate encoder, node scaling, splits. No torch."""
