"""The quiz of lesson 06."""

from __future__ import annotations

from autograder.exercises.quiz import Question, quiz
from autograder.exercises.relative_bias import LESSON
from autograder.results import Text

QUIZ = quiz(
    "quiz-relative",
    LESSON,
    2.0,
    (
        Question(
            answer="c",
            wrong={
                "a": Text(
                    en="Question 1: bucket 5 belongs to a key 5 places before the query: in the encoder, keys after "
                    "it use the upper half of the buckets.",
                    zh="第 1 题：5 号桶属于查询之前第 5 个键；编码器中，查询之后的键使用后一半的桶。",
                ),
                "b": Text(
                    en="Question 1: you counted backwards from the middle (16 − 5). Each half counts upwards from "
                    "its own start.",
                    zh="第 1 题：你从中间倒着数了（16 − 5）。两半都从各自的起点往上数。",
                ),
                "d": Text(
                    en="Question 1: you counted backwards from the end (32 − 5). The upper half counts upwards from "
                    "its own start.",
                    zh="第 1 题：你从末尾倒着数了（32 − 5）。后一半从自己的起点往上数。",
                ),
            },
        ),
        Question(
            answer="d",
            wrong={
                "a": Text(
                    en="Question 2: the bias is added before the softmax, so weights are divided by e to the power "
                    "of slope times distance, not by the distance.",
                    zh="第 2 题：偏置在 softmax 之前相加，因此权重按 e 的（斜率×距离）次方缩小，而不是按距离本身缩小。",
                ),
                "b": Text(
                    en="Question 2: a head has one slope, but the bias is slope times distance, and the two "
                    "distances differ.",
                    zh="第 2 题：一个 head 只有一个斜率，但偏置等于斜率乘以距离，而两个距离并不相同。",
                ),
                "c": Text(
                    en="Question 2: that is e to the difference of the distances, 2. The slope 1/2 multiplies it "
                    "first.",
                    zh="第 2 题：这是 e 的距离差（2）次方；还要先乘上斜率 1/2。",
                ),
            },
        ),
        Question(
            answer="a",
            wrong={
                "b": Text(
                    en="Question 3: the two differ by slope times the position of the query. That is the same number "
                    "for all keys of one row, and the softmax takes it out.",
                    zh="第 3 题：两者只差（斜率×查询位置），这个数在同一行的所有键上都相同，softmax 会把它消去。",
                ),
            },
        ),
        Question(
            answer="b",
            wrong={
                "a": Text(
                    en="Question 4: distances come out wrong across the border, because both segments count from 0: "
                    "the word 5 places back looks as if it were 1 place back.",
                    zh="第 4 题：跨越段边界时距离会算错，因为两段都从 0 数起：前 5 个位置的词看起来就像前 1 个位置。",
                ),
                "c": Text(
                    en="Question 4: all kept words come before the query and may be seen. Their codes are the "
                    "trouble: each code now occurs twice.",
                    zh="第 4 题：保留下来的词都在查询之前，可以被看到。问题在于编码：每个编码现在出现了两次。",
                ),
                "d": Text(
                    en="Question 4: the kept keys were made from words with a code. It is the code of the wrong "
                    "place: their own segment also counted from 0.",
                    zh="第 4 题：保留的键是由带编码的词算出来的，只是编码的位置不对：它们那一段也是从 0 数起的。",
                ),
            },
        ),
        Question(
            answer="c",
            wrong={
                "a": Text(
                    en="Question 5: rotary adds no number: it turns query and key, and at distance 100 by angles "
                    "that training never showed.",
                    zh="第 5 题：旋转编码不加任何数：它转动查询和键，而距离 100 处的角度在训练中从未出现过。",
                ),
                "b": Text(
                    en="Question 5: with 32 buckets in one direction, distances 0 to 15 have a bucket each. Distance "
                    "100 falls into a later bucket, which no training text has touched.",
                    zh="第 5 题：单向 32 个桶时，距离 0 到 15 各占一个桶；距离 100 落在后面的桶里，训练文本从未用到它"
                    "。",
                ),
                "d": Text(
                    en="Question 5: ALiBi does add a number there, but a fixed rule gives it; its slopes are not "
                    "trained.",
                    zh="第 5 题：ALiBi 在那里确实加了一个数，但它来自固定规则，斜率不参与训练。",
                ),
            },
        ),
    ),
)
