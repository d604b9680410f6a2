"""Lesson 04: known mistakes in feed-forward networks, and what to tell those who make them."""

from __future__ import annotations

import torch.nn.functional as F
from torch import nn

from autograder.exercises import feed_forward_wrong as wrong
from autograder.exercises.declaration import Mistake
from autograder.results import Text


def _mistake(slug: str, answer: type[nn.Module], en: str, zh: str) -> Mistake:
    return Mistake(slug=slug, message=Text(en=en, zh=zh), answers={"FeedForward": answer})


FEED_FORWARD_MISTAKES = (
    _mistake(
        "no-activation",
        wrong.NoActivation,
        "Nothing bends between your two layers. Two linear layers in a row are one linear layer, however wide the "
        "middle is: look for the step that the formula puts between them.",
        "两个线性层之间没有激活函数。两个线性层直接相连，不论中间多宽，仍等于一个线性层：公式里它们之间还有一步。",
    ),
    _mistake(
        "activation-last",
        wrong.ActivationLast,
        "The activation comes after the second layer. It belongs where the features are wide; at the end it would, "
        "with ReLU, forbid every negative output.",
        "激活函数放到了第二层之后。它应当作用在变宽之后的特征上；放在最后，用 ReLU 时输出就不可能为负。",
    ),
    _mistake(
        "activation-twice",
        wrong.ActivationTwice,
        "The activation is applied after both layers. The last step of the formula is a plain linear layer: with ReLU "
        "behind it no output could be negative.",
        "两层之后都加了激活函数。公式的最后一步只是线性层：若后面再接 ReLU，输出就不可能为负。",
    ),
    _mistake(
        "gelu-tanh",
        wrong.bending(gelu=wrong.gelu_tanh),
        'For "gelu" you use the approximation with tanh. It comes close, within half a thousandth, but it is another '
        "function, and a model trained with one form is slightly off with the other. The task asks for the exact one.",
        "“gelu” 用的是 tanh 近似。它很接近，误差不到千分之零点五，但毕竟是另一个函数：用一种形式训练的模型，换成另一"
        "种就会略有偏差。题目要求精确形式。",
    ),
    _mistake(
        "gelu-sigmoid",
        wrong.bending(gelu=wrong.quick_gelu),
        'For "gelu" you use x times a sigmoid. Some models do, but it is an approximation, off by up to a fiftieth. '
        "The task asks for the exact form.",
        "“gelu” 用的是 x 乘以 sigmoid。确有模型这样做，但这是近似，误差可达五十分之一。题目要求精确形式。",
    ),
    _mistake(
        "relu-always",
        wrong.bending(gelu=F.relu),
        "Your network uses ReLU whatever `activation` says. Follow the argument from the constructor to `forward`.",
        "不论 activation 是什么，你的网络都用 ReLU。请顺着这个参数，从构造函数查到 forward。",
    ),
    _mistake(
        "gelu-always",
        wrong.bending(relu=F.gelu),
        "Your network uses GELU whatever `activation` says, also by default. Follow the argument from the constructor "
        "to `forward`.",
        "不论 activation 是什么（包括默认值），你的网络都用 GELU。请顺着这个参数，从构造函数查到 forward。",
    ),
    _mistake(
        "activations-exchanged",
        wrong.bending(relu=F.gelu, gelu=F.relu),
        '"relu" gives GELU and "gelu" gives ReLU: the two branches are exchanged.',
        "“relu” 得到的是 GELU，“gelu” 得到的是 ReLU：两个分支写反了。",
    ),
    _mistake(
        "names-swapped",
        wrong.NamesSwapped,
        "The computation is right, but the names of your two layers are exchanged: the layer called `expand` narrows. "
        "Weights saved by others could not be loaded.",
        "计算是对的，但两层的名字对调了：名叫 expand 的那层在变窄。这样就无法加载别人保存的权重。",
    ),
    _mistake(
        "other-names",
        wrong.named("fc1", "fc2"),
        "The computation is right, but your two layers have other names than the task gives them. Names are part of a "
        "module: weights are saved and loaded by them.",
        "计算是对的，但两层的名字与题目规定的不同。名字是模块的一部分：权重按名字保存和加载。",
    ),
    _mistake(
        "in-sequence",
        wrong.InSequence,
        "The computation is right, but in an nn.Sequential the layers are called by numbers. Keep the two layers as "
        "attributes with the names that the task gives.",
        "计算是对的，但放进 nn.Sequential 后，各层的名字就成了编号。请把两层保存为属性，并用题目给出的名字。",
    ),
    _mistake(
        "no-biases",
        wrong.without_bias("expand", "contract"),
        "Your layers have no bias. Compare your parameters with the names that the task lists.",
        "你的两层都没有偏置。请把你的参数和题目列出的名字对照一下。",
    ),
    _mistake(
        "no-first-bias",
        wrong.without_bias("expand"),
        "The first layer has no bias, the second has one. Compare your parameters with the names that the task lists.",
        "第一层没有偏置，第二层有。请把你的参数和题目列出的名字对照一下。",
    ),
    _mistake(
        "no-last-bias",
        wrong.without_bias("contract"),
        "The second layer has no bias, the first has one. Compare your parameters with the names that the task lists.",
        "第二层没有偏置，第一层有。请把你的参数和题目列出的名字对照一下。",
    ),
    _mistake(
        "no-dropout",
        wrong.NoDropout,
        "Nothing is ever dropped: the argument `dropout` has no effect. Find its place in the formula.",
        "从来没有丢弃任何特征：参数 dropout 不起作用。请在公式里找到它的位置。",
    ),
    _mistake(
        "dropout-last",
        wrong.DropoutLast,
        "Dropout comes after the second layer. The formula has it one step earlier, where the features are wide.",
        "dropout 放到了第二层之后。公式里它要早一步，作用在变宽之后的特征上。",
    ),
    _mistake(
        "dropout-twice",
        wrong.DropoutTwice,
        "Dropout comes twice, also after the second layer. The formula has it once.",
        "dropout 用了两次，第二层之后也有。公式里只有一次。",
    ),
    _mistake(
        "dropout-first",
        wrong.DropoutFirst,
        "Dropout is applied to the input of the network. The formula has it later, where the features are wide.",
        "dropout 作用在了网络的输入上。公式里它更靠后，作用在变宽之后的特征上。",
    ),
    _mistake(
        "dropout-before-activation",
        wrong.DropoutBeforeActivation,
        "Dropout comes before the activation. With ReLU that makes no difference; with GELU it does, because what is "
        "left is scaled up before it is bent.",
        "dropout 放到了激活函数之前。用 ReLU 时没有区别；用 GELU 时有：剩下的值先被放大，才经过激活函数。",
    ),
    _mistake(
        "dropout-in-eval",
        wrong.DropoutAlways,
        "Features are dropped in eval mode too. The function form of dropout does not know the module's mode unless "
        "it is told.",
        "评估模式下也丢弃了特征。函数形式的 dropout 不知道模块处于哪种模式，需要你告诉它。",
    ),
    _mistake(
        "dropout-fixed",
        wrong.DropoutFixed,
        "The share of dropped features is a fixed number in your code: the argument `dropout` has no effect.",
        "丢弃比例在你的代码里是一个写死的数：参数 dropout 不起作用。",
    ),
    _mistake(
        "dropout-default",
        wrong.DropoutDefault,
        "Your dropout drops half of the features: it was made without the argument and uses torch's own default.",
        "你的 dropout 丢弃了一半特征：创建它时没有传入参数，用了 torch 自己的默认值。",
    ),
    _mistake(
        "dropout-unscaled",
        wrong.DropoutUnscaled,
        "Features are dropped, but what is left is not scaled up. Dropout keeps the expected value, so that eval mode "
        "needs no correction.",
        "特征被丢弃了，但剩下的没有放大。dropout 要保持期望值不变，这样评估模式就不需要再修正。",
    ),
    _mistake(
        "residual-inside",
        wrong.Residual,
        "Your network adds its input to the result. That step belongs to the frame around it, which is a later "
        "exercise; here it would be added twice.",
        "你的网络把输入加到了结果上。这一步属于它外面的框架，是后面的练习；写在这里就会加两次。",
    ),
    _mistake(
        "unknown-accepted",
        wrong.Accepted,
        "A misspelt activation is accepted without a word, and another one is used in its place. Refuse names that you "
        "don't know when the module is built.",
        "激活函数名写错时，你的代码一声不响地接受，并换用了另一个。遇到不认识的名字，应当在构造模块时就拒绝。",
    ),
    _mistake(
        "refused-late",
        wrong.Late,
        "An unknown activation is refused, but only in `forward`. Whoever builds the module should learn of it at "
        "once.",
        "未知的激活函数会被拒绝，但要等到 forward 才发现。应当让构造模块的人马上知道。",
    ),
    _mistake(
        "key-error",
        wrong.refusing(KeyError),
        "An unknown activation ends in a KeyError from looking it up. Refuse it yourself, with the error class that "
        "the task names and a message that says what was given.",
        "未知的激活函数在查表时引发了 KeyError。请自己拒绝它：用题目规定的异常类型，并在信息里写明收到了什么。",
    ),
    _mistake(
        "refused-without-names",
        wrong.refusing(lambda name: ValueError("unsupported")),
        "An unknown activation is refused, but the message does not say which argument was wrong and what it was.",
        "未知的激活函数被拒绝了，但信息里没有写明是哪个参数不对、它的值是什么。",
    ),
    _mistake(
        "detached",
        wrong.Detached,
        "No gradient gets back to your first layer: somewhere in `forward` the widened features are cut off from the "
        "graph.",
        "梯度传不到第一层：在 forward 的某处，变宽之后的特征脱离了计算图。",
    ),
    _mistake(
        "float32-forced",
        wrong.Float32Forced,
        "The result is float32 even when input and parameters are not. Leave the dtype as it is.",
        "即使输入和参数不是 float32，结果也成了 float32。请保持 dtype 不变。",
    ),
)
