"""Lesson 01: its quiz, and for each wrong letter the misconception behind it."""

from __future__ import annotations

from autograder.exercises.quiz import Question, quiz
from autograder.results import Text

QUIZ = quiz(
    "quiz-order",
    "01-why-order-matters",
    points=2.0,
    questions=(
        Question(
            "c",
            {
                "a": Text(
                    en="Attention never asks on which side a word stands. Follow the output at the middle word: which "
                    "scores enter, and what does their sum depend on?",
                    zh="注意力从不问一个词在哪一边。请跟踪 爱 处的输出：用到哪些分数？它们的和取决于什么？",
                ),
                "b": Text(
                    en="Nothing special about the vectors of the outer two words is needed. Which words does the "
                    "middle one see in each text?",
                    zh="并不需要 我 和 你 的向量有什么特别。两句话里，爱 各看到了哪些词？",
                ),
                "d": Text(
                    en="What holds for one layer holds for the next, which receives the moved outputs. "
                    "Read again what a chain of such layers does.",
                    zh="对一层成立的事，对下一层同样成立：它收到的只是换了位置的输出。请再看一遍："
                    "把这样的层串起来会怎样。",
                ),
            },
        ),
        Question(
            "b",
            {
                "a": Text(
                    en="The same vectors come back, but look in which rows. Compare the two lists of outputs for "
                    "*wo ai ni* and *ni ai wo*.",
                    zh="得到的确实是同一批向量，但请看它们各在哪一行。把 wo ai ni 和 ni ai wo 的两组输出对照一下。",
                ),
            },
        ),
        Question(
            "a",
            {
                "b": Text(
                    en="More layers and heads of this kind are blind in the same way. The proof asked for no number "
                    "of layers.",
                    zh="再多这样的层和头，也同样看不到顺序。证明里并没有限定层数。",
                ),
                "c": Text(
                    en="Training changes weights. The proof holds for all weights, so no amount of data teaches this "
                    "network what it can't see.",
                    zh="训练改变的是权重，而证明对任何权重都成立：数据再多，也教不会网络去看它看不到的东西。",
                ),
                "d": Text(
                    en="A sum forgets the order of what it adds just as an average does. And the order is lost before "
                    "that step.",
                    zh="求和与求平均一样，都会忘掉各项的先后。何况顺序在这一步之前就已经丢了。",
                ),
            },
        ),
        Question(
            "d",
            {
                "a": Text(
                    en="That is the number of the position. The head returns an average of zeros and one 1, so it "
                    "can't pass 1.",
                    zh="那是位置编号。这个头返回的是若干个 0 和一个 1 的平均，不可能超过 1。",
                ),
                "b": Text(
                    en="You counted the tokens before this one. Whom else may a position see under a causal mask?",
                    zh="你只数了它前面的词元。在因果掩码下，一个位置还能看到谁？",
                ),
                "c": Text(
                    en="You averaged over the whole text. Some of these tokens are hidden from position 4.",
                    zh="你对整段文本求了平均，而其中有些词元是位置 4 看不到的。",
                ),
            },
        ),
        Question(
            "b",
            {
                "a": Text(
                    en="The last token sees all words, and in one layer it averages their own vectors. "
                    "Write down what it averages in these two texts.",
                    zh="最后一个词元能看到所有词，而且只有一层时，它平均的就是各个词自己的向量。"
                    "请写出它在这两段文本里各平均了什么。",
                ),
                "c": Text(
                    en="For one of the pairs the last token averages exactly the same things. Write down, text by "
                    "text, which words it sees.",
                    zh="其中有一对，最后一个词元所平均的东西完全相同。请逐段写出它看到了哪些词。",
                ),
                "d": Text(
                    en="One layer is blind to the order of what the last token sees, not to which words there are and "
                    "how many.",
                    zh="只有一层时，最后一个词元分不清所见之词的先后，但并非分不清有哪些词、各有几个。",
                ),
            },
        ),
    ),
)
