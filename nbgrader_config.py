"""nbgrader's configuration for this course: `nbgrader …` and formgrader, started in this folder, read it."""

c = get_config()  # noqa: F821  (nbgrader provides it)

c.CourseDirectory.course_id = "order-matters"

# What a student sees where an answer belongs. It fails with an explanation instead of a bare NotImplementedError.
c.ClearSolutions.code_stub = {
    "python": '# YOUR CODE HERE: replace the next line.\nraise NotImplementedError("No answer in this cell yet.")',
}

from nbgrader.converters import Autograde, GenerateAssignment  # noqa: E402
from nbgrader.preprocessors import ClearSolutions  # noqa: E402

from autograder.plugins.execute import ExecuteSafely  # noqa: E402
from autograder.plugins.preprocessors import ClearAnswers, DropTags, OnlyPointsCount, Unpair  # noqa: E402

# `nbgrader generate_assignment`, and the course's build: a quiz gets no stub that raises, a student's notebook no pair.
c.GenerateAssignment.preprocessors = [
    *(ClearAnswers if step is ClearSolutions else step for step in GenerateAssignment.preprocessors.default()),
    Unpair,
]

# Plain `nbgrader autograde` and formgrader: submitted tags are dropped, the notebook runs in the sandbox, and only the
# points that the examiner gave count. `c.ExecuteSafely.sandbox = False` is for submissions that you trust.
_execute, *_after = Autograde.autograde_preprocessors.default()
c.Autograde.sanitize_preprocessors = [DropTags, *Autograde.sanitize_preprocessors.default()]
c.Autograde.autograde_preprocessors = [ExecuteSafely, OnlyPointsCount, *_after]

# What students write is shown to whoever grades it: no script and no other HTML of theirs runs there.
c.HTMLExporter.sanitize_html = True

# `nbgrader validate`: an experiment takes a few seconds; on a busy machine nbgrader's 30 s are not always enough.
c.Execute.timeout = 120

# `nbgrader zip_collect`: what Canvas, Moodle, Blackboard, Brightspace, Gradescope and nbgrader name their downloads.
# `c.PlatformCollector.students = "students.csv"` maps their names to ids.
c.ZipCollectApp.extractor_plugin = "autograder.plugins.collect.CarefulExtractor"
c.ZipCollectApp.collector_plugin = "autograder.plugins.collect.PlatformCollector"
