"""The words of the class report."""

from __future__ import annotations

from collections.abc import Mapping

from autograder.results import Text

WORDS: Mapping[str, Text] = {
    "report": Text(en="Class report", zh="班级报告"),
    "made": Text(en="results of", zh="结果时间："),
    "no-sandbox": Text(
        en="Graded without a sandbox: submissions ran as programs of whoever graded.",
        zh="评分时没有使用沙箱：提交的代码以评分者本人的身份运行。",
    ),
    "submissions": Text(en="submissions", zh="份提交"),
    "graded": Text(en="graded in full", zh="已评分"),
    "partly": Text(en="partly graded", zh="部分评分"),
    "rejected": Text(en="rejected", zh="未评分"),
    "median": Text(en="median", zh="中位数"),
    "mean": Text(en="mean", zh="平均"),
    "middle": Text(en="middle half", zh="中间一半"),
    "grading-time": Text(en="grading time in all", zh="评分总用时"),
    "distribution": Text(en="How the points are distributed", zh="得分分布"),
    "share-axis": Text(en="points reached, % of the maximum", zh="得分占满分的百分比"),
    "students-axis": Text(en="students", zh="学生人数"),
    "difficulty-head": Text(en="Exercise by exercise", zh="逐题分析"),
    "exercise": Text(en="Exercise", zh="练习"),
    "points": Text(en="Points", zh="分值"),
    "difficulty": Text(en="Mean", zh="平均得分率"),
    "discrimination": Text(en="Discrimination", zh="区分度"),
    "all": Text(en="all points", zh="满分"),
    "some": Text(en="some", zh="部分得分"),
    "no": Text(en="none", zh="零分"),
    "unjudged": Text(en="not judged", zh="未评判"),
    "difficulty-note": Text(
        en="Mean: share of the points that judged answers reached, so a low number is a hard exercise. Discrimination: "
        "correlation of the exercise with the rest of the lesson, the exercise itself left out of the total (corrected "
        "item-total correlation; for an exercise that is right or wrong, the point-biserial one), over the {n} "
        "submissions graded in full. Near 0 or below: those who did well elsewhere did no better here; look at the "
        "exercise, its text and its test. Source: Henrysson (1963), Psychometrika 28, 211–218; Crocker and Algina "
        "(1986), Introduction to Classical and Modern Test Theory, chapter 14.",
        zh="平均得分率：已评判答案得到的分数占分值的比例，数值低说明题目难。区分度：该题得分与本课其余各题总分（不含该题）"
        "的相关系数，即校正后的题总相关；对只有对错两种结果的题，就是点二列相关。统计对象为完整评分的 {n} 份提交。"
        "接近 0 或为负：其他题做得好的学生在这道题上并不占优，应检查题目、题面和测试。"
        "出处：Henrysson (1963), Psychometrika 28, 211–218；"
        "Crocker 与 Algina (1986), Introduction to Classical and Modern Test Theory 第 14 章。",
    ),
    "few": Text(
        en="With {n} submissions a correlation is a hint at best.",
        zh="只有 {n} 份提交，相关系数至多算是一个提示。",
    ),
    "map": Text(en="The class at a glance", zh="全班一览"),
    "map-note": Text(
        en="One row a student, the best on top; one column an exercise; the darker, the more points. A pale column is "
        "a hard exercise, a pale stripe across is a student who needs help.",
        zh="每行一名学生，得分高的在上；每列一道练习；颜色越深，得分越多。整列偏浅，说明题目难；整行偏浅，说明这名学生需要帮助。",
    ),
    "mistakes": Text(en="Mistakes, the most frequent first", zh="常见错误（按人数排序）"),
    "mistake": Text(en="Mistake", zh="错误"),
    "what": Text(en="What students were told, and who", zh="给学生的说明，以及哪些学生"),
    "unanswered": Text(en="No answer", zh="没有作答"),
    "no-mistakes": Text(en="No known mistake was made.", zh="没有人犯已知的错误。"),
    "criteria": Text(en="Criteria that everybody or nobody met", zh="全部通过或无人通过的评分项"),
    "everybody": Text(en="Everybody met", zh="全部通过"),
    "nobody": Text(en="Nobody met", zh="无人通过"),
    "nothing": Text(en="none", zh="无"),
    "criteria-note": Text(
        en="Of the answers that were judged criterion by criterion. What nobody meets is often a fault of the exercise "
        "or of its text; what everybody meets tells nobody apart.",
        zh="统计对象为逐项评判的答案。无人通过的评分项，问题常常出在题目或题面；全部通过的评分项没有区分作用。",
    ),
    "time": Text(en="Time spent on grading", zh="评分用时"),
    "time-axis": Text(en="seconds a submission", zh="每份提交的秒数"),
    "time-note": Text(
        en="From opening the notebook to the last verdict. The slowest: {slow}.",
        zh="从打开笔记本到最后一项评判。最慢的：{slow}。",
    ),
    "troubled": Text(en="Rejected, or graded in part", zh="未评分或部分评分的提交"),
    "reason": Text(en="Reason", zh="原因"),
    "no-trouble": Text(en="Every submission was graded in full.", zh="所有提交都已完整评分。"),
    "repairs": Text(en="What was repaired", zh="笔记本修复情况"),
    "repair": Text(en="Repair", zh="修复内容"),
    "repairs-note": Text(
        en="These notebooks came damaged, or with cells of the course changed, moved or gone, and were mended before "
        "they ran: {n} of {all}. A repair costs no points, and the students' pages do not tell it.",
        zh="这些笔记本交上来时已有损坏，或课程单元格被改动、移动、删除，运行之前已修复：{all} 份中有 {n} 份。"
        "修复本身不扣分，学生的反馈页面上也不提。",
    ),
    "students": Text(en="Every student", zh="全部学生"),
    "student": Text(en="Student", zh="学生"),
    "outcome": Text(en="Outcome", zh="结果"),
    "score": Text(en="Points", zh="得分"),
    "seconds": Text(en="Seconds", zh="秒"),
    "sort": Text(en="Choose a column's heading to sort by it.", zh="点击列标题即可按该列排序。"),
    "by-hand-note": Text(
        en="Points by automatic grading. Answers graded by hand ({names}) are not in them; exports take them from the "
        "gradebook.",
        zh="以上为自动评分的得分，不含人工评分的题目（{names}）；导出成绩时会从成绩册中取得。",
    ),
    "empty": Text(en="There is no submission.", zh="没有任何提交。"),
    # The text descriptions of the plots.
    "alt-distribution": Text(
        en="Histogram of the points of {n} submissions in steps of 10 %: {bins}. The median is {median} %.",
        zh="{n} 份提交的得分直方图，每 10% 一段：{bins}。中位数为 {median}%。",
    ),
    "alt-exercises": Text(
        en="Bars, one an exercise: how many got all points, some, none, or no verdict. {parts}.",
        zh="每道练习一条：满分、部分得分、零分、未评判的人数。{parts}。",
    ),
    "alt-exercise": Text(
        en="{exercise}: {full} all, {partial} some, {none} none, {unjudged} not judged",
        zh="{exercise}：满分 {full}，部分 {partial}，零分 {none}，未评判 {unjudged}",
    ),
    "alt-scatter": Text(
        en="Each exercise by its mean (from left, hard, to right, easy) and its discrimination (upwards). {parts}.",
        zh="各题的平均得分率（左难右易）与区分度（越高越好）。{parts}。",
    ),
    "alt-point": Text(
        en="{exercise}: mean {difficulty} %, {discrimination}",
        zh="{exercise}：平均 {difficulty}%，{discrimination}",
    ),
    "alt-map": Text(
        en="Heat map of {n} students, sorted by their points, and {m} exercises; darker is more. The columns hold the "
        "numbers of the table of exercises.",
        zh="{n} 名学生（按得分排序）与 {m} 道练习的热力图，颜色越深得分越多。各列的数值见逐题表格。",
    ),
    "alt-mistakes": Text(
        en="Bars: the {n} most frequent mistakes and how many students made them. {parts}.",
        zh="最常见的 {n} 种错误及人数。{parts}。",
    ),
    "alt-time": Text(
        en="Histogram of the seconds that {n} submissions took: {bins}. The median is {median} s.",
        zh="{n} 份提交评分用时的直方图：{bins}。中位数为 {median} 秒。",
    ),
}  # fmt: skip
