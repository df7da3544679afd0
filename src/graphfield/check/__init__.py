"""The table linter: what every column is taken for, what is changed on the way in, what looks wrong."""
