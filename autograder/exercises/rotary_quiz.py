"""The quiz of lesson 05."""

from __future__ import annotations

from autograder.exercises.learned import LESSON
from autograder.exercises.quiz import Question, quiz
from autograder.results import Text

QUIZ = quiz(
    "quiz-rotary",
    LESSON,
    2.0,
    (
        Question(
            answer="b",
            wrong={
                "a": Text(
                    en="Question 1: an error comes where the table ends. How many rows does it have, and how many does "
                    "this text need?",
                    zh="第 1 题：报错的地方是表的末尾。表有多少行，这段文字又需要多少行？",
                ),
                "c": Text(
                    en="Question 1: what does a table hold before the first training step? Look at the picture of the "
                    "rows that moved and those that didn't.",
                    zh="第 1 题：在第一步训练之前，表里装的是什么？请再看那张图：哪些行动过，哪些没有。",
                ),
                "d": Text(
                    en="Question 1: a table has no formula that could go on. Each row knows only the gradients that "
                    "reached it.",
                    zh="第 1 题：表里没有可以延续下去的公式。每一行只知道传到它那里的梯度。",
                ),
            },
        ),
        Question(
            answer="d",
            wrong={
                "a": Text(
                    en="Question 2: equal vectors that are turned by different angles point in different directions. "
                    "By what angle is each turned?",
                    zh="第 2 题：两个相等的向量转过不同的角度，方向就不同了。它们各转了多少？",
                ),
                "b": Text(
                    en="Question 2: you added the two positions. Both arrows turn the same way: what is the angle that "
                    "stays between them?",
                    zh="第 2 题：你把两个位置加了起来。两支箭头朝同一个方向转：它们之间剩下的夹角是多少？",
                ),
                "c": Text(
                    en="Question 2: that is the product of the first columns alone. A turned vector has a second "
                    "column too, and a dot product adds up both.",
                    zh="第 2 题：这只是第一列的乘积。转动之后第二列也有数，点积要把两列都加上。",
                ),
            },
        ),
        Question(
            answer="b",
            wrong={
                "a": Text(
                    en="Question 3: look at the curves of the experiment past the trained length. Which distances did "
                    "the model never meet in training?",
                    zh="第 3 题：请看实验中超出训练长度之后的曲线。哪些距离是模型在训练中从未遇到过的？",
                ),
            },
        ),
        Question(
            answer="c",
            wrong={
                "a": Text(
                    en="Question 4: both pairings give a result of the same shape. Nothing in the shapes could tell "
                    "them apart.",
                    zh="第 4 题：两种配对得到的结果形状相同。从形状上根本分辨不出来。",
                ),
                "b": Text(
                    en="Question 4: what is the angle between a query and a key at one and the same position, "
                    "whichever columns turn together?",
                    zh="第 4 题：查询和键在同一个位置时，不管哪两列一起转，它们之间多转了多少角度？",
                ),
                "d": Text(
                    en="Question 4: in the section on the trap you measured the scores at several distances. Were they "
                    "the same?",
                    zh="第 4 题：在讲“陷阱”的那一节，你测量过几个距离上的分数。它们一样吗？",
                ),
            },
        ),
        Question(
            answer="a",
            wrong={
                "b": Text(
                    en="Question 5: the score is relative, yes: to the positions that were used for the turns. Which "
                    "position does a text of a single word get by default?",
                    zh="第 5 题：分数确实是相对的，但相对的是旋转时所用的位置。只有一个词的输入，默认得到哪个位置？",
                ),
                "c": Text(
                    en="Question 5: read again which of query, key and value are turned at all.",
                    zh="第 5 题：请再看一遍：查询、键、值之中，被旋转的是哪些？",
                ),
                "d": Text(
                    en="Question 5: one query may be compared with any number of keys. The shapes are fine.",
                    zh="第 5 题：一个查询可以和任意多个键比较。形状没有问题。",
                ),
            },
        ),
    ),
)
