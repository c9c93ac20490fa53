"""A simulated year of memory: what is said when, how it is lived through, and what has to hold every evening."""
