"""From the raw data of one field to the figures and tables of a study."""
