"""A checkpoint as a folder that transformers can load."""
