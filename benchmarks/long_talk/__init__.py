"""A long working conversation that is made by rules: who says what, what tools answer, and facts to be found again."""
