"""Lesson 03: its quiz, and for each wrong letter the misconception behind it."""

from __future__ import annotations

from autograder.exercises.quiz import Question, quiz
from autograder.results import Text

QUIZ = quiz(
    "quiz-embedding",
    "03-embedding-plus-position",
    points=2.0,
    questions=(
        Question(
            "c",
            {
                "a": Text(
                    en="Question 1: so long is a row as it stands in the table. The question asks for the word after "
                    "the factor.",
                    zh="第 1 题：那是表里原来一行的长度。题目问的是乘上系数之后的词。",
                ),
                "b": Text(
                    en="Question 1: the word is right, the encoding is not. Count its hands, and how long each is.",
                    zh="第 1 题：词的长度对，编码的长度不对。请数一数它有几根指针，每根多长。",
                ),
                "d": Text(
                    en="Question 1: such a word comes from a table that was long already before the factor. With which "
                    "standard deviation is this table drawn?",
                    zh="第 1 题：那样的词，来自乘系数之前就已经很长的表。这张表是用多大的标准差抽取的？",
                ),
            },
        ),
        Question(
            "a",
            {
                "b": Text(
                    en="Question 2: this one isn't mentioned in the two lists either. But does it stay behind when the "
                    "model moves? Read the table of the four places again.",
                    zh="第 2 题：这一种同样不出现在那两份清单里。但模型移动时，它会留在原地吗？"
                    "请再看四种存放方式的表。",
                ),
                "c": Text(
                    en="Question 2: this one is saved, so one of the two lists would mention it. And it moves along.",
                    zh="第 2 题：这一种会被保存，所以其中一份清单会提到它；而且它会跟着移动。",
                ),
                "d": Text(
                    en="Question 2: this one is trained and saved: both lists would mention it. And it moves along.",
                    zh="第 2 题：这一种会被训练，也会被保存：两份清单都会提到它；而且它会跟着移动。",
                ),
            },
        ),
        Question(
            "b",
            {
                "a": Text(
                    en="Question 3: the row is zero, but what stands there after the position is added? And what does "
                    "softmax make of a score of 0?",
                    zh="第 3 题：那一行是零，可是加上位置之后呢？softmax 又会把 0 分变成什么？",
                ),
            },
        ),
        Question(
            "d",
            {
                "a": Text(
                    en="Question 4: an error comes only past the end of the table. Where does a call without an offset "
                    "begin to count?",
                    zh="第 4 题：只有超出表的末尾才会报错。没有 offset 的调用从哪里开始数？",
                ),
                "b": Text(
                    en="Question 4: the mask says who may look at whom. It changes nothing in the vector that goes in, "
                    "and that vector is what the offset is for.",
                    zh="第 4 题：掩码只规定谁可以看谁，并不改变送进去的向量；而 offset 管的正是那个向量。",
                ),
                "c": Text(
                    en="Question 4: that would be an offset that is wrong by one. Here it is the same in every call: "
                    "look at the run that read word by word without it.",
                    zh="第 4 题：那是 offset 差一的情形。这里每次调用的 offset 都一样："
                    "请看逐词读入而没有 offset 的那次运行。",
                ),
            },
        ),
        Question(
            "b",
            {
                "a": Text(
                    en="Question 5: the puzzle at the start found word and position again in such sums. Nothing is "
                    "cancelled.",
                    zh="第 5 题：开头的谜题正是从这样的和里找回了词和位置。并没有什么被抵消。",
                ),
                "c": Text(
                    en="Question 5: that would be short rows without the factor. How long is a row as PyTorch fills "
                    "it, before the factor and after?",
                    zh="第 5 题：那是短的行而又没有系数的情形。PyTorch 填好的一行有多长？乘系数之前、之后各是多少？",
                ),
                "d": Text(
                    en="Question 5: that factor belongs to the scores between query and key. Here it would shrink the "
                    "words: would the model then notice the order less?",
                    zh="第 5 题：那个系数属于查询与键之间的分数。用在这里会把词缩小：那样模型会更不注意顺序吗？",
                ),
            },
        ),
    ),
)
