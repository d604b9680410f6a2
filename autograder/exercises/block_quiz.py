"""Lesson 04: its quiz, and for each wrong letter the misconception behind it."""

from __future__ import annotations

from autograder.exercises.quiz import Question, quiz
from autograder.results import Text

QUIZ = quiz(
    "quiz-block",
    "04-feed-forward-and-add-norm",
    points=2.0,
    questions=(
        Question(
            "b",
            {
                "a": Text(
                    en="Question 1: how long a text could a network with weights for each position read? And in the "
                    "figure, what became of the same word at two positions?",
                    zh="第 1 题：如果每个位置各有一套权重，网络最多能读多长的文本？再看图：同一个词在两个位置上，结果"
                    "如何？",
                ),
            },
        ),
        Question(
            "c",
            {
                "a": Text(
                    en="Question 2: you divided by a root that averages over one feature less than there are. That "
                    "is the variance of the statistician.",
                    zh="第 2 题：你除以的那个根，求平均时少算了一个特征。那是统计学里用样本做估计的方差。",
                ),
                "b": Text(
                    en="Question 2: you divided by the variance itself. A step lies between it and the division.",
                    zh="第 2 题：你直接除以了方差。方差和除法之间还有一步。",
                ),
                "d": Text(
                    en="Question 2: the spread is right, but the 5 still contains the mean of the four features.",
                    zh="第 2 题：离散程度算对了，但那个 5 里还包含着四个特征的均值。",
                ),
            },
        ),
        Question(
            "d",
            {
                "a": Text(
                    en="Question 3: without positions the order is lost, but different words still have different "
                    "vectors. Why would all words become alike?",
                    zh="第 3 题：没有位置编码会失去顺序，但不同的词仍是不同的向量。为什么所有的词会变得几乎一样？",
                ),
                "b": Text(
                    en="Question 3: a wider feed-forward network costs more, but treats each word by itself. It does "
                    "not draw words towards each other.",
                    zh="第 3 题：更宽的前馈网络只是更费资源，它对每个词单独处理，不会把词拉到一起。",
                ),
                "c": Text(
                    en="Question 3: in that order each word's own vector still runs through the whole stack "
                    "untouched. Something that carries a word's own vector must be missing here.",
                    zh="第 3 题：在那种顺序下，每个词自己的向量仍原样穿过整个堆叠。而这里，一定是少了保留词自身向量的"
                    "东西。",
                ),
            },
        ),
        Question(
            "a",
            {
                "b": Text(
                    en="Question 4: look for the length in the formula of the parameters. A longer text is read with "
                    "the same weights.",
                    zh="第 4 题：请在参数量的公式里找一找长度。更长的文本是用同一套权重来读的。",
                ),
                "c": Text(
                    en="Question 4: with twice as many words, each has twice as many partners. What does that make "
                    "of the pairs?",
                    zh="第 4 题：词多一倍，每个词的对象也多一倍。那么词对变成了多少？",
                ),
                "d": Text(
                    en="Question 4: the feed-forward network looks at one word at a time. Its work for a word does "
                    "not depend on how many others there are.",
                    zh="第 4 题：前馈网络每次只看一个词。它处理一个词的计算量，与还有多少别的词无关。",
                ),
            },
        ),
        Question(
            "b",
            {
                "a": Text(
                    en="Question 5: follow x through one such block with silent sublayers. A norm stands on the way, "
                    "and it changes x.",
                    zh="第 5 题：子层都不出声时，让 x 走过这样的一个块。路上有归一化，它会改变 x。",
                ),
                "c": Text(
                    en="Question 5: with silent sublayers the two orders differ: in one of them x still meets norms "
                    "on its way.",
                    zh="第 5 题：子层都不出声时，两种顺序并不相同：其中一种，x 在路上仍会遇到归一化。",
                ),
                "d": Text(
                    en="Question 5: the sublayers put out 0, but what is their output added to?",
                    zh="第 5 题：子层的输出是 0，但它们的输出是加到什么上面的？",
                ),
            },
        ),
    ),
)
