"""nbgrader's configuration of this course. nbgrader's commands, the formgrader and qkv all read it."""

import sys
from pathlib import Path

try:
    from graders.settings import configure

    c = get_config()
    configure(c, Path(__file__).resolve().parent)

    c.CourseDirectory.course_id = "qkv"

    # Settings of the grader, with their defaults:
    # c.QKV.call_seconds, c.QKV.cell_seconds, c.QKV.hand_in_seconds = 10, 30, 120
    # c.QKV.memory, c.QKV.file_bytes, c.QKV.scratch_bytes = 2 << 30, 16 << 20, 64 << 20
    # c.QKV.open_files, c.QKV.threads, c.QKV.output_characters = 128, 256, 1_000_000
    # c.QKV.jobs = 0                      # hand-ins graded at the same time; 0: as many as cores
    # c.QKV.points = {"attention_shapes": {"output": 4}}
    # c.QKV.reveal_expected = False       # show students what was expected on hidden inputs, too
    # c.QKV.aliases = {"a.lovelace": "ada"}  # ada's notebook may say so, and is judged on those numbers
except Exception as error:
    # Without this nbgrader logs the error and goes on with its stock executor, which trusts student code.
    sys.exit(f"nbgrader_config.py does not load: {type(error).__name__}: {error}")
