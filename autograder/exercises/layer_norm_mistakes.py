"""Lesson 04: known mistakes in layer norms, and what to tell those who make them."""

from __future__ import annotations

from torch import nn

from autograder.exercises import layer_norm_wrong as wrong
from autograder.exercises.declaration import Mistake
from autograder.results import Text


def _mistake(slug: str, answer: type[nn.Module], en: str, zh: str) -> Mistake:
    return Mistake(slug=slug, message=Text(en=en, zh=zh), answers={"LayerNorm": answer})


LAYER_NORM_MISTAKES = (
    _mistake(
        "unbiased-variance",
        wrong.normalising(wrong.unbiased),
        "Your variance divides by one less than the number of features, as a statistician estimates from a sample. "
        "That is torch's default; layer norm divides by the number itself. Look at the arguments of the function you "
        "use.",
        "你的方差除以的是特征数减一，那是统计学里由样本做估计的算法，也是 torch 的默认。层归一化除以特征数本身：请看"
        "所用函数的参数。",
    ),
    _mistake(
        "unbiased-and-eps-outside",
        wrong.normalising(wrong.annotated),
        "Two things at once, as in a well-known tutorial: `std` divides by one less than the number of features by "
        "default, and eps is added after the root instead of inside.",
        "有两处不同（某个著名教程也是这样写的）：std 默认除以特征数减一；eps 加在了开方之后，而不是根号里面。",
    ),
    _mistake(
        "eps-outside",
        wrong.normalising(wrong.eps_outside),
        "eps is added after the root has been taken. In the formula it stands under the root sign, beside the "
        "variance.",
        "eps 加在了开方之后。公式里它在根号里面，和方差在一起。",
    ),
    _mistake(
        "eps-squared",
        wrong.normalising(wrong.eps_squared),
        "eps is squared under the root. In the formula it is added to the variance as it is.",
        "根号里的 eps 被平方了。公式里它原样加到方差上。",
    ),
    _mistake(
        "eps-missing",
        wrong.normalising(wrong.no_eps),
        "eps appears nowhere: features that are all alike are divided by zero and become NaN.",
        "没有用到 eps：当所有特征都相同时，就会除以零，得到 NaN。",
    ),
    _mistake(
        "eps-ignored",
        wrong.eps_is(fixed=1e-5),
        "The argument eps has no effect: your code uses a fixed number in its place.",
        "参数 eps 不起作用：你的代码用的是一个写死的数。",
    ),
    _mistake(
        "eps-ignored-and-too-small",
        wrong.eps_is(fixed=1e-6),
        "The argument eps has no effect: your code uses a fixed number in its place, smaller than the signature's "
        "default.",
        "参数 eps 不起作用：你的代码用的是一个写死的数，而且比签名里的默认值小。",
    ),
    _mistake(
        "eps-ignored-and-tiny",
        wrong.eps_is(fixed=1e-12),
        "The argument eps has no effect. What keeps the division harmless in your code is far smaller than the "
        "signature's default; a function that you call may bring such a number along.",
        "参数 eps 不起作用。你的代码里防止除以零的那个数比签名里的默认值小得多，它也可能是你调用的函数自带的。",
    ),
    _mistake(
        "default-eps-too-small",
        wrong.eps_is(default=1e-6),
        "The default of eps is smaller than in the signature that the task gives. It shows where features hardly "
        "differ.",
        "eps 的默认值比题目给出的签名里小。在特征几乎没有差别时，就能看出来。",
    ),
    _mistake(
        "default-eps-of-bert",
        wrong.eps_is(default=1e-12),
        "The default of eps is the tiny one of BERT's configuration, not that of the signature in the task.",
        "eps 的默认值用了 BERT 配置里那个极小的数，而不是题目签名里的。",
    ),
    _mistake(
        "over-batch",
        wrong.over(0),
        "Mean and variance run over the sentences of the batch. Layer norm looks at one position of one sentence at "
        "a time, and at nothing else.",
        "均值和方差是在 batch 的各个句子上算的。层归一化每次只看一个句子的一个位置，不看别的。",
    ),
    _mistake(
        "over-length",
        wrong.over(1),
        "Mean and variance run over the positions. A word would then feel its neighbours, even padding: count the axis "
        "again, from the end.",
        "均值和方差是在各个位置上算的。这样一个词就会受相邻词、甚至填充的影响：请从末尾重新数一数轴。",
    ),
    _mistake(
        "over-length-and-features",
        wrong.over(-2, -1),
        "Mean and variance run over a whole sentence, all positions together. Each position has its own.",
        "均值和方差是在整个句子、所有位置上一起算的。每个位置应有自己的均值和方差。",
    ),
    _mistake(
        "over-batch-and-length",
        wrong.over(0, 1),
        "Mean and variance run over batch and positions, one pair for each feature. That is batch norm.",
        "均值和方差是在 batch 和位置上算的，每个特征一对。那是批归一化（batch norm）。",
    ),
    _mistake(
        "over-everything",
        wrong.over(0, 1, 2),
        "There is one mean and one variance for the whole batch. Name the axis over which they run.",
        "整个 batch 只有一个均值和一个方差。请指明在哪个轴上计算。",
    ),
    _mistake(
        "fixed-axis",
        wrong.over(2),
        "The axis is a fixed number, counted from the front. It fits inputs with three axes; with fewer or more it "
        "is another axis, or none. Count from the end that never changes.",
        "轴写成了从前面数的固定编号，只适合三个轴的输入；轴多了或少了，它就是别的轴，或者根本不存在。请从固定不变的那"
        "一端数起。",
    ),
    _mistake(
        "no-root",
        wrong.normalising(wrong.no_root),
        "You divide by the variance. The result then has the variance one over what it was: a step between variance "
        "and division is missing.",
        "你除以了方差。这样得到的结果，方差成了原来的倒数：方差和除法之间还缺一步。",
    ),
    _mistake(
        "multiplied",
        wrong.normalising(wrong.root_multiplied),
        "You multiply by the standard deviation: features that spread widely spread still more. Check the direction.",
        "你乘上了标准差：本来就分散的特征变得更分散。请检查方向。",
    ),
    _mistake(
        "mean-not-subtracted",
        wrong.normalising(wrong.mean_kept),
        "The mean is not subtracted from the features. Their average after the norm should be zero, before scale and "
        "shift.",
        "没有从特征中减去均值。归一化之后（缩放和平移之前），特征的平均值应当是零。",
    ),
    _mistake(
        "root-mean-square",
        wrong.normalising(wrong.root_mean_square),
        "This is RMS norm: no mean is subtracted, neither from the features nor in the variance. Many newer models "
        "use it, but it is not layer norm.",
        "这是 RMS norm：特征没有减去均值，方差里也没有。许多新模型用它，但它不是层归一化。",
    ),
    _mistake(
        "variance-around-zero",
        wrong.normalising(wrong.around_zero),
        "The features are centred, but your variance is the mean of the squares of what they were before. Whose "
        "squares does the variance average?",
        "特征减了均值，但你的方差是减均值之前的平方的平均。方差平均的，是哪些数的平方？",
    ),
    _mistake(
        "not-divided",
        wrong.normalising(wrong.not_divided),
        "The mean is subtracted, but nothing is divided: each position keeps its own spread.",
        "减了均值，但没有做除法：每个位置仍保留自己的离散程度。",
    ),
    _mistake(
        "affine-missing",
        wrong.WithoutAffine,
        "The learned scale and shift are missing among the module's parameters. Either there are none, or they are "
        "tensors of which the module does not know that they are to be learned. Without them a network could not undo "
        "the norm where it does harm.",
        "模块的参数里没有可学习的缩放和平移：要么没有写，要么写成了模块不认作参数的张量。没有它们，网络就无法在归一化"
        "有害的地方把它抵消掉。",
    ),
    _mistake(
        "affine-ignored",
        wrong.finishing(lambda x, weight, bias: x),
        "`weight` and `bias` are there, but your result does not use them.",
        "weight 和 bias 是有的，但你的结果没有用到它们。",
    ),
    _mistake(
        "bias-ignored",
        wrong.finishing(lambda x, weight, bias: x * weight),
        "`bias` is there, but your result does not use it.",
        "bias 是有的，但你的结果没有用到它。",
    ),
    _mistake(
        "weight-and-bias-swapped",
        wrong.finishing(lambda x, weight, bias: x * bias + weight),
        "`weight` and `bias` have exchanged their parts: one should multiply, the other shift.",
        "weight 和 bias 的作用对调了：一个应当用来相乘，另一个用来平移。",
    ),
    _mistake(
        "shifted-before-scaled",
        wrong.finishing(lambda x, weight, bias: (x + bias) * weight),
        "The shift is added before the scale, and is scaled with it. The formula multiplies first.",
        "先平移、后缩放，平移量也跟着被缩放了。公式是先做乘法。",
    ),
    _mistake(
        "weight-starts-at-zero",
        wrong.starting(0.0, 0.0),
        "A scale that starts at zero wipes out every feature. Before training the norm should neither scale nor shift.",
        "缩放从零开始，会把所有特征都抹掉。训练之前，归一化应当既不缩放也不平移。",
    ),
    _mistake(
        "bias-starts-at-one",
        wrong.starting(1.0, 1.0),
        "A shift that starts at one moves every feature. Before training the norm should neither scale nor shift.",
        "平移从一开始，会使每个特征都移动。训练之前，归一化应当既不缩放也不平移。",
    ),
    _mistake(
        "starting-values-exchanged",
        wrong.starting(0.0, 1.0),
        "The first values of `weight` and `bias` are exchanged. Ask which number changes nothing in a product, and "
        "which in a sum.",
        "weight 和 bias 的初值写反了。想一想：乘以哪个数等于不变，加上哪个数等于不变？",
    ),
    _mistake(
        "weight-starts-at-random",
        wrong.StartingAtRandom,
        "The scale starts with random numbers, as a linear layer does. Before training the norm should neither scale "
        "nor shift.",
        "缩放像线性层那样从随机数开始。训练之前，归一化应当既不缩放也不平移。",
    ),
    _mistake(
        "gamma-and-beta",
        wrong.named("gamma", "beta"),
        "The computation is right, but the parameters are called as in the paper. The task gives other names, those "
        "that torch uses.",
        "计算是对的，但参数用了论文里的名字。题目规定的是另外两个名字，也就是 torch 用的名字。",
    ),
    _mistake(
        "plain-tensors",
        wrong.PlainTensors,
        "`weight` and `bias` are plain tensors: an optimiser does not find them, and they are not saved. Tell the "
        "module that they are parameters.",
        "weight 和 bias 只是普通张量：优化器找不到它们，保存时也没有它们。要让模块知道它们是参数。",
    ),
    _mistake(
        "buffers",
        wrong.Buffers,
        "`weight` and `bias` are buffers: they are saved, but never trained. What is learned has to be a parameter.",
        "weight 和 bias 是缓冲区（buffer）：会保存，但不会训练。要学习的东西必须是参数。",
    ),
    _mistake(
        "one-number-each",
        wrong.OneNumberEach,
        "Scale and shift are a single number each. Every feature has its own.",
        "缩放和平移各只有一个数。每个特征都应有自己的缩放和平移。",
    ),
    _mistake(
        "statistics-detached",
        wrong.normalising(wrong.statistics_detached),
        "The values are right, but mean and variance are cut off from the graph: x reaches the result through them "
        "too, and that part of the gradient is lost.",
        "数值是对的，但均值和方差脱离了计算图：x 也通过它们影响结果，这部分梯度丢失了。",
    ),
    _mistake(
        "float32-forced",
        wrong.Float32Forced,
        "The result is float32 whatever the input is. Computing in float32 inside is fine; give back the input's "
        "dtype.",
        "不论输入是什么 dtype，结果都成了 float32。内部用 float32 计算没有问题，但要还原成输入的 dtype。",
    ),
    _mistake(
        "input-changed",
        wrong.InPlace,
        "Your norm changes its input in place. Whoever called it still needs x, for the residual connection.",
        "你的归一化原地改动了输入。调用者还需要 x，用于残差连接。",
    ),
)
