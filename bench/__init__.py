"""How fast grading is, beside stock nbgrader and cold nbclient on the same hand-ins: `python -m bench`."""
