"""Why an exercise, or a whole submission, got no verdict: the words for the instructor and the student."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nbformat import NotebookNode

from autograder.kernels.execution import Ending, Execution
from autograder.results import Text, Verdict

ENDINGS = {
    Ending.KERNEL_DIED: Text(
        en="the kernel died in the cell {cell} ({detail})",
        zh="内核在单元格 {cell} 中崩溃（{detail}）",
    ),
    Ending.STUCK: Text(
        en="the cell {cell} did not end and ignored the interrupt",
        zh="单元格 {cell} 一直不结束，并且不响应中断",
    ),
    Ending.OUT_OF_TIME: Text(
        en="the notebook's total time was used up before the cell {cell}",
        zh="在到达单元格 {cell} 之前，笔记本的总时间已用完",
    ),
    Ending.OUT_OF_MEMORY: Text(
        en="the notebook used more than {detail} of memory in the cell {cell}",
        zh="笔记本在单元格 {cell} 中占用的内存超过 {detail}",
    ),
    Ending.TOO_MUCH_OUTPUT: Text(
        en="the notebook wrote more than {detail} of output, last in the cell {cell}",
        zh="笔记本的输出超过 {detail}，最后运行的是单元格 {cell}",
    ),
    Ending.NO_KERNEL: Text(en="no kernel could be started: {detail}", zh="无法启动内核：{detail}"),
}

NOT_REACHED = "not-reached"
"""The slug of an exercise before whose verdict the notebook stopped."""


def stopped_reason(execution: Execution, notebook: NotebookNode) -> Text | None:
    """Why the execution ended early, or None."""
    if execution.ending is Ending.FINISHED:
        return None
    cell = notebook.cells[execution.stopped_at]["id"] if execution.stopped_at is not None else ""
    template = ENDINGS[execution.ending]
    return Text(
        en=template.en.format(cell=cell, detail=execution.detail),
        zh=template.zh.format(cell=cell, detail=execution.detail),
    )


def not_judged(unjudged: Sequence[Verdict]) -> Text:
    """Which exercises of a notebook that ran to its end have no verdict."""
    return Text(
        en="not judged: " + ", ".join(f"{verdict.exercise} ({verdict.mistake})" for verdict in unjudged),
        zh="未评分：" + "、".join(f"{verdict.exercise}（{verdict.mistake}）" for verdict in unjudged),
    )


def without_verdict(exercise: str, points: float, mistake: str, message: Text, *, judged: bool) -> Verdict:
    """No points, with the reason."""
    return Verdict(exercise, 0.0, points, mistake, message, (), judged=judged)


def not_reached(exercise: str, points: float, why: Text) -> Verdict:
    """The notebook stopped before this exercise's test cell, or in it."""
    return without_verdict(
        exercise,
        points,
        NOT_REACHED,
        Text(en=f"Not judged: {why.en}.", zh=f"未评分：{why.zh}。"),
        judged=False,
    )


def timed_out(exercise: str, points: float) -> Verdict:
    return without_verdict(
        exercise,
        points,
        "timed-out",
        Text(
            en="Not judged: the test cell ran out of time. The code loops without end, or is far too slow.",
            zh="未评分：测试单元格超时。你的代码陷入死循环，或者对题目要求的规模而言太慢。",
        ),
        judged=False,
    )


def examiner_died(exercise: str, points: float) -> Verdict:
    return without_verdict(
        exercise,
        points,
        "examiner-died",
        Text(
            en="Not judged: the examiner ended while it judged this answer. Grade this submission again.",
            zh="未评分：评分进程在评判此题时意外结束。请重新评分。",
        ),
        judged=False,
    )


def examiner_failed(exercise: str, points: float, fault: str) -> Verdict:
    return without_verdict(
        exercise,
        points,
        "examiner-failed",
        Text(
            en=f"Not judged: the examiner failed on this answer ({fault}). Please report it.",
            zh=f"未评分：评分进程处理此题时出错（{fault}）。请报告该问题。",
        ),
        judged=False,
    )


def refused(exercise: str, points: float, why: str) -> Verdict:
    return without_verdict(
        exercise,
        points,
        "malformed-answer",
        Text(
            en=f"No points: what the answer sent to the examiner was not of the agreed form ({why}).",
            zh=f"不得分：答案发给评分进程的数据不符合约定格式（{why}）。",
        ),
        judged=True,
    )


def no_record(exercise: str, points: float, test_cell: NotebookNode, *, missing: bool) -> Verdict:
    """The test cell ended without an examination: from its error, say why."""
    errors = [output for output in test_cell.outputs if output.output_type == "error"]
    name, value = (errors[-1].get("ename", ""), str(errors[-1].get("evalue", ""))) if errors else ("", "")
    undefined = re.match(r"name '(\w+)' is not defined", value)
    if name == "NameError" and undefined:
        cause_en = (
            "the answer cell is missing" if missing else "its cell has an error, or the name is spelt differently"
        )
        cause_zh = "没有找到作答单元格" if missing else "它所在的单元格报错，或者名字拼写不同"
        return without_verdict(
            exercise,
            points,
            "not-defined",
            Text(
                en=f"No points: the notebook defines no {undefined.group(1)}: {cause_en}.",
                zh=f"不得分：笔记本中没有定义 {undefined.group(1)}：{cause_zh}。",
            ),
            judged=True,
        )
    cause = f"{name}: {value}" if errors else "the cell ended without asking the examiner"
    cause_zh = f"{name}: {value}" if errors else "单元格没有向评分进程提交答案就结束了"
    return without_verdict(
        exercise,
        points,
        "no-examination",
        Text(en=f"No points: the test could not be taken ({cause}).", zh=f"不得分：测试未能进行（{cause_zh}）。"),
        judged=True,
    )


def answer_missing(exercise: str, points: float) -> Verdict:
    return without_verdict(
        exercise,
        points,
        "answer-missing",
        Text(
            en="No points: the answer cell is not in the notebook that was handed in, and no other cell defines what "
            "it asks for. Was it deleted?",
            zh="不得分：提交的笔记本里没有这道题的作答单元格，其他单元格也没有定义题目要求的内容。是不是误删了？",
        ),
        judged=True,
    )


UNREADABLE = Text(en="The notebook can't be read: {why}.", zh="无法读取笔记本：{why}。")
