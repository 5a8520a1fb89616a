"""What only the grader has: references, hidden checks, the sandbox they are judged through, and the `qkv` command."""
