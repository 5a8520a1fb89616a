"""The code that runs beside the student's: mounted alone, started by path, it knows no exercise and nothing of ours."""
