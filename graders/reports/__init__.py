"""Verdicts, as people read them. Everything here reads verdicts and nothing else."""
