"""Run a student's cells and call their functions in a process of their own. Knows no exercise."""
