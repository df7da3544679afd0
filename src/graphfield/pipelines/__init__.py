"""From the data of one field to its figures and tables, in one call."""
