# Values of R's huge on a small table, for tests/solvers/test_huge.py:
#   apt-get install r-cran-huge r-cran-jsonlite
#   Rscript tests/solvers/huge/values.R > tests/solvers/huge/values.json
suppressMessages({
  library(huge)
  library(jsonlite)
})
set.seed(1)
X <- matrix(rnorm(150 * 6), 150, 6)
for (j in 2:6) X[, j] <- X[, j] + 0.7 * X[, j - 1]
X[, 2] <- exp(X[, 2] / 2)
X[, 5] <- X[, 5]^3
X <- round(X, 4)
lambda <- c(0.3, 0.15, 0.05)
joint <- huge(X, lambda = lambda, method = "glasso", verbose = FALSE)
nodewise <- huge(X, lambda = lambda, method = "mb", verbose = FALSE)
cat(toJSON(list(
  version = as.character(packageVersion("huge")),
  X = X,
  lambda = lambda,
  scores = huge.npn(X, verbose = FALSE),
  skeptic = huge.npn(X, npn.func = "skeptic", verbose = FALSE),
  precision = lapply(joint$icov, as.matrix),
  coefficients = lapply(nodewise$beta, as.matrix)
), digits = 6))
