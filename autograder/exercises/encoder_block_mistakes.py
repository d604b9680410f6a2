"""Lesson 04: known mistakes in the encoder block, and what to tell those who make them."""

from __future__ import annotations

from torch import nn

from autograder.exercises import encoder_block_wrong as wrong
from autograder.exercises.declaration import Mistake
from autograder.results import Text


def _mistake(slug: str, answer: type[nn.Module], en: str, zh: str) -> Mistake:
    return Mistake(slug=slug, message=Text(en=en, zh=zh), answers={"EncoderBlock": answer})


ENCODER_BLOCK_MISTAKES = (
    _mistake(
        "orders-swapped",
        wrong.running(wrong.pre, wrong.post),
        "The two orders are exchanged: `norm_first` gives the norm after the addition, and the default gives it "
        "before.",
        "两种顺序写反了：norm_first 为真时归一化在相加之后，默认时却在之前。",
    ),
    _mistake(
        "always-post",
        wrong.running(pre=wrong.post),
        "`norm_first=True` changes nothing: the norm always comes after the addition.",
        "norm_first=True 不起作用：归一化总在相加之后。",
    ),
    _mistake(
        "always-pre",
        wrong.running(post=wrong.pre),
        "The norm always comes before the sublayer. By default it comes after the addition, as in 2017.",
        "归一化总在子层之前。默认情况下应当像 2017 年的论文那样，在相加之后。",
    ),
    _mistake(
        "residual-from-normed",
        wrong.running(pre=wrong.pre_from_normed),
        "With the norm first, the sublayer's output is added to the *normalised* x: `x = norm(x)` has overwritten "
        "what should pass untouched. What does the residual line carry?",
        "先归一化时，子层的输出加到了归一化之后的 x 上：x = norm(x) 覆盖了本该原样通过的量。残差那条线上传的是什么？",
    ),
    _mistake(
        "both-residuals-from-the-input",
        wrong.running(wrong.post_from_x, wrong.pre_from_x),
        "Both additions use the block's input. The second one should start from what the first one produced.",
        "两次相加用的都是整个块的输入。第二次应当从第一次的结果开始。",
    ),
    _mistake(
        "second-residual-from-the-input",
        wrong.running(pre=wrong.pre_from_x),
        "With the norm first, the second addition starts from the block's input, and what attention has added is lost "
        "from the residual line. It should start from the first sum.",
        "先归一化时，第二次相加用的是整个块的输入，注意力加上去的部分就从残差那条线上丢掉了。它应当从第一次的和开始。",
    ),
    _mistake(
        "feed-forward-reads-the-input",
        wrong.running(post=wrong.post_parallel),
        "In the default order, the feed-forward network reads the block's input. It should read what attention and "
        "the first norm have made of it.",
        "默认顺序下，前馈网络读的是整个块的输入。它应当读经过注意力和第一次归一化之后的结果。",
    ),
    _mistake(
        "sublayers-in-parallel",
        wrong.running(pre=wrong.pre_parallel),
        "With the norm first, both sublayers read the block's input side by side. The feed-forward network should "
        "read what attention has already changed.",
        "先归一化时，两个子层都直接读整个块的输入。前馈网络应当读注意力改动之后的结果。",
    ),
    _mistake(
        "feed-forward-first",
        wrong.running(wrong.feed_forward_first_post, wrong.feed_forward_first_pre),
        "The feed-forward network comes before attention. The order of the two sublayers is the other one.",
        "前馈网络放到了注意力之前。两个子层的先后反了。",
    ),
    _mistake(
        "residuals-missing",
        wrong.dropping(
            lambda x, sublayer, norm, drop: norm(drop(sublayer(x))),
            lambda x, sublayer, norm, drop: drop(sublayer(norm(x))),
        ),
        "There are no residual connections: x reaches the result only through the sublayers.",
        "没有残差连接：x 只能通过子层进入结果。",
    ),
    _mistake(
        "norms-missing",
        wrong.dropping(
            lambda x, sublayer, norm, drop: x + drop(sublayer(x)),
            lambda x, sublayer, norm, drop: x + drop(sublayer(x)),
        ),
        "The two norms are there, but nothing passes through them.",
        "两个归一化层是有的，但没有任何数据经过它们。",
    ),
    _mistake(
        "norm-of-the-sublayers-output",
        wrong.running(pre=wrong.pre_norm_of_output),
        "With the norm first, you normalise what the sublayer puts out. Its place is in front of the sublayer.",
        "先归一化时，你归一化的是子层的输出。它应当放在子层前面。",
    ),
    _mistake(
        "norm-before-and-after",
        wrong.dropping(
            lambda x, sublayer, norm, drop: norm(x + drop(sublayer(x))),
            lambda x, sublayer, norm, drop: norm(x + drop(sublayer(norm(x)))),
        ),
        "With `norm_first=True` the sum is normalised too. The residual line should carry it on as it is.",
        "norm_first=True 时，相加的和也被归一化了。残差那条线应当把它原样传下去。",
    ),
    _mistake(
        "extra-norm-at-the-end",
        wrong.running(pre=wrong.pre_then_norm),
        "With `norm_first=True` one more norm follows at the end. A stack of such blocks ends in one, but it belongs "
        "to the stack.",
        "norm_first=True 时，末尾多了一次归一化。由这样的块堆成的网络末尾确有一次，但它属于整个堆叠，不属于块。",
    ),
    _mistake(
        "third-norm",
        wrong.FinalNorm,
        "Your block has a third norm, at its end, for `norm_first=True`. A stack of such blocks ends in one, but it "
        "belongs to the stack.",
        "你的块有第三个归一化层，放在 norm_first=True 时的末尾。由这样的块堆成的网络末尾确有一个，但它属于整个堆叠，"
        "不属于块。",
    ),
    _mistake(
        "norm-before-attention-only",
        wrong.running(pre=wrong.pre_one_norm),
        "With the norm first, the feed-forward network reads the sum as it is. Its own norm comes before it.",
        "先归一化时，前馈网络直接读了未归一化的和。它前面应当有自己的归一化。",
    ),
    _mistake(
        "norm-at-the-end-only",
        wrong.running(post=wrong.post_last_only),
        "By default only the second sum is normalised. The first one needs its norm too.",
        "默认顺序下只归一化了第二次的和。第一次的和也要归一化。",
    ),
    _mistake(
        "norm-shared",
        wrong.built(wrong.norm_shared),
        "One norm serves both sublayers. Each has a norm of its own, with its own scale and shift, under the name "
        "that the task gives.",
        "两个子层共用了一个归一化层。它们应当各有自己的归一化层（缩放和平移各自独立），名字由题目规定。",
    ),
    _mistake(
        "norms-are-one-object",
        wrong.built(wrong.norm_aliased),
        "Both names stand for one and the same norm: its parameters are trained twice and exist once. Make two.",
        "两个名字指向同一个归一化层：参数只有一份，却被两处训练。请创建两个。",
    ),
    _mistake(
        "second-norm-unused",
        wrong.with_norms("attention_norm", "attention_norm"),
        "The attention's norm is used at the feed-forward network too; the other one is there and never used.",
        "前馈网络那里也用了注意力的归一化层；另一个虽然有，却从未使用。",
    ),
    _mistake(
        "norms-exchanged",
        wrong.with_norms("feed_forward_norm", "attention_norm"),
        "The two norms have exchanged their places: the one named for the feed-forward network serves attention.",
        "两个归一化层的位置对调了：以前馈网络命名的那个用在了注意力上。",
    ),
    _mistake(
        "mask-not-passed",
        wrong.running(wrong.without_mask, wrong.without_mask),
        "The mask changes nothing: it is not handed on to attention. Follow the argument `mask` through `forward`.",
        "掩码不起作用：它没有传给注意力。请顺着参数 mask 检查 forward。",
    ),
    _mistake(
        "mask-inverted",
        wrong.running(wrong.mask_inverted, wrong.mask_inverted),
        "The mask is inverted before it reaches attention. True already means: may be attended to.",
        "掩码在传给注意力之前被取反了。True 本来就表示可以关注。",
    ),
    _mistake(
        "mask-lost-with-norm-first",
        wrong.running(pre=wrong.without_mask),
        "With `norm_first=True` the mask is not handed on to attention; in the other order it is.",
        "norm_first=True 时，掩码没有传给注意力；另一种顺序下是传了的。",
    ),
    _mistake(
        "mask-lost-with-norm-last",
        wrong.running(post=wrong.without_mask),
        "In the default order the mask is not handed on to attention; with `norm_first=True` it is.",
        "默认顺序下，掩码没有传给注意力；norm_first=True 时是传了的。",
    ),
    _mistake(
        "attention-only",
        wrong.running(wrong.attention_only_post, wrong.attention_only_pre),
        "The feed-forward network is there, but `forward` never calls it.",
        "前馈网络是有的，但 forward 从未调用它。",
    ),
    _mistake(
        "activation-ignored",
        wrong.built(wrong.relu),
        "The argument `activation` does not reach the feed-forward network: it always uses ReLU.",
        "参数 activation 没有传到前馈网络：它总是用 ReLU。",
    ),
    _mistake(
        "activation-always-gelu",
        wrong.built(wrong.gelu),
        "The feed-forward network always uses GELU, also where `activation` says otherwise.",
        "前馈网络总是用 GELU，即使 activation 指定的不是它。",
    ),
    _mistake(
        "gelu-tanh-inside",
        wrong.built(wrong.gelu_tanh),
        'The block is built right. What is off comes from inside: your FeedForward uses the approximation of "gelu" '
        "with tanh. Mend it there.",
        "块的结构是对的。问题出在里面：你的 FeedForward 对 “gelu” 用了 tanh 近似。请在那里改。",
    ),
    _mistake(
        "no-activation-inside",
        wrong.built(wrong.linear),
        "The block is built right. What is off comes from inside: your FeedForward applies no activation. Mend it "
        "there.",
        "块的结构是对的。问题出在里面：你的 FeedForward 没有激活函数。请在那里改。",
    ),
    _mistake(
        "unbiased-variance-inside",
        wrong.built(wrong.norms_unbiased),
        "The block is built right. What is off comes from inside: the variance in your LayerNorm divides by one less "
        "than the number of features. Mend it there.",
        "块的结构是对的。问题出在里面：你的 LayerNorm 里，方差除以的是特征数减一。请在那里改。",
    ),
    _mistake(
        "no-dropout",
        wrong.dropping(
            lambda x, sublayer, norm, drop: norm(x + sublayer(x)),
            lambda x, sublayer, norm, drop: x + sublayer(norm(x)),
        ),
        "What the sublayers put out is never dropped. Dropout inside them is another matter: here it acts between a "
        "sublayer and the addition.",
        "子层的输出从未被丢弃。子层内部的 dropout 是另一回事：这里的 dropout 作用在子层和相加之间。",
    ),
    _mistake(
        "dropout-after-attention-only",
        wrong.running(wrong.post_dropping_attention, wrong.pre_dropping_attention),
        "Only one of the two sublayers has dropout on its output. Dropout inside a sublayer does not replace the "
        "other.",
        "两个子层中只有一个的输出做了 dropout。子层内部的 dropout 不能代替另一个。",
    ),
    _mistake(
        "dropout-on-the-sum",
        wrong.dropping(
            lambda x, sublayer, norm, drop: norm(drop(x + sublayer(x))),
            lambda x, sublayer, norm, drop: drop(x + sublayer(norm(x))),
        ),
        "Dropout hits the sum, and so drops features of the residual line too. That line should pass whole.",
        "dropout 作用在了和上，连残差那条线的特征也会被丢弃。那条线应当完整通过。",
    ),
    _mistake(
        "dropout-after-the-norm",
        wrong.dropping(
            lambda x, sublayer, norm, drop: drop(norm(x + sublayer(x))),
            lambda x, sublayer, norm, drop: x + sublayer(drop(norm(x))),
        ),
        "Dropout comes after the norm. Its place is between a sublayer and the addition.",
        "dropout 放到了归一化之后。它的位置在子层和相加之间。",
    ),
    _mistake(
        "dropout-in-eval",
        wrong.running(wrong.post_always_dropping, wrong.pre_always_dropping),
        "Features are dropped in eval mode too. The function form of dropout does not know the module's mode unless "
        "it is told.",
        "评估模式下也丢弃了特征。函数形式的 dropout 不知道模块处于哪种模式，需要你告诉它。",
    ),
    _mistake(
        "dropout-fixed",
        wrong.built(wrong.dropout_fixed),
        "The share of dropped features is a fixed number in your code: the argument `dropout` has no effect, and "
        "features are dropped even by default.",
        "丢弃比例在你的代码里是一个写死的数：参数 dropout 不起作用，默认情况下也会丢弃特征。",
    ),
    _mistake(
        "add-norm-as-norm",
        wrong.AddNorms,
        "The computation is right, but each of your norms sits inside an AddNorm, so that its parameters are called "
        "differently. The task asks for the two layer norms themselves.",
        "计算是对的，但两个归一化层都包在 AddNorm 里，参数的名字就不同了。题目要的是两个层归一化本身。",
    ),
    _mistake(
        "torch-names",
        wrong.TorchNames,
        "The computation is right, but the parts are called as in torch's own layer. The task gives them other names.",
        "计算是对的，但各部分用了 torch 自带层里的名字。题目规定的是另外的名字。",
    ),
    _mistake(
        "input-changed",
        wrong.running(pre=wrong.pre_in_place),
        "With `norm_first=True` your block changes its input in place (`+=` does). Make a new tensor.",
        "norm_first=True 时，你的块原地改动了输入（+= 就会这样）。请生成新的张量。",
    ),
)
