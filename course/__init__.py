"""What students have: lessons, visible checks, pictures and personal numbers.

It holds no answer and imports nothing of the grader's.
"""
