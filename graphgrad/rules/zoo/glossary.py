"""Words for what rows take, one meaning for one name; and what an example gives for it."""


def _read(text: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in text.strip().split("\n"))


WORDS = _read("""
a: the first input of the gates, a probability
above: how much wider it is above the threshold
activation: what is done before
again: uniform numbers that were drawn for the second time
alpha: how steep, how high or how sparse it is
around: whether one step passes the gradient around all
at_zero: what holds at 0
atol: how far they may be apart
axis: the axis along which it goes
b: the bias, or the second input
backward: whether the gradient is treated likewise; a temperature: that of the backward
band: half the width of where it passes
bandwidth: how wide the rectangle at the threshold is
baseline: what a score is compared with
beta: how steep it is
bits: how many bits a value has
budget: the sum
byzantine: how many may be wrong
c: the slope outside
carries: which factors carry relevance
centre: the middle of the interval
clamp: the largest magnitude of a smooth clamp
clamped: whether the gradient is cut off outside
clip: the largest magnitude that counts
codebook: the codes (codes, features)
codebooks: the codes of each layer (layers, codes, features)
columns: the sums of the columns
commitment: the weight of what draws x to its code
control: a function of logistic samples that builds graph
cost: the true costs
damping: how far each step goes
delta: how much more or less
density: of what density the noise is
descending: whether the largest comes first
distance: half the width of the interval
distribution: how a soft swap goes
drawn: bits that were drawn
edges: where an edge belongs
epsilon: what is added, so that nothing is divided by 0
eta: the weight of the control
event: a function of time and states that builds graph
error: the error of the output
errors: after how many skipped steps it passes
f: which activation
factor: what a gradient is multiplied or divided by
feedback: fixed weights
first: what was drawn for the first branch
format: which 8-bit floats
forward: the temperature of the draw
gain: the factor of the normalisation before
gamma: how much more what has the sign of the sum counts
gap: by how much the drawn one leads
gated: whether it is x times a step
group: how many neighbours of the last axis share a step
h: the weight of the wide densities
hard: whether a clip stands for the tanh
height: the gradient at 0
halves: where halves go
high: the upper end
inside: what is asked whether it is inside
iterations: how many turns
jitter: how far below the best an expert is drawn
k: how many; a slope: how steep; a head: the keys
kind: which rule
layers: how many
leak: what passes elsewhere
learns: whether the scale is differentiated
least: the least that counts
levels: how many values
limit: the largest that is let through
log2_t: the logarithm of the threshold, base 2
loss: a function of bits that builds graph
low: the lower end
mask: the mask
matrices: the matrix of each layer
matrix: what makes codes of the codebook
mean: the mean of the noise
method: how it is ordered
mode: how smooth the step is
most: the largest slope
mu: the middle
n: how many terms
nan: what a NaN becomes
narrow: whether the least integer is left out
negative: the scale of negative numbers
network: which places are compared
noise: noise that was drawn
norm: the order of the norm
nu: how much more
objective: what the true solution costs, (..., 1)
of_square: whether epsilon bounds the squared norm
orders: for each gradient an order of all
over: the axis of the sum, where it differs
p: the root
patterns: what weights are multiplied by
period: the length of a period
phi: the exponent
positive: the scale of positive numbers
pull: the weight of what draws the code to x
q: which quantile; a head: the queries
radius: how large, or how far
rate: how many are dropped
reward: what the sample earned
rotation: whether the gradient is rotated
rows: the sums of the rows
rtol: how far they may be apart, as a part of the second
s: how much wider the wide densities are
sample: what was drawn
scale: what it is multiplied by
scores: what the choice goes by
selected: how many are averaged
sense: what is sought
shift: what is added to alpha
side: where it passes
sigma: how wide it is
skipped: how many steps in a row were skipped
slope: how steep it is
softness: how wide the step is
solution: the true solution
solve: a function of costs that builds graph
sparsity: the part that is left out
start: where the iteration starts
standardised: whether x is standardised and squashed first
squared: whether the distance is squared
steepness: how steep it is
step: the step
strength: how far the costs are moved
symmetric: whether the grid is symmetric
tau: how much of a potential stays
time: when the event is
t: how steep it is
target: what is aimed at
temperature: how soft it is
tensors: those whose gradients meet
threshold: from where it counts
times: to how many tasks it is handed
to_input: whether x has the gradient of the step, too
trim: how many at each end are left out
two_sides: whether both sides are asked
undefined: the gradient where there is none
uniform: uniform numbers that were drawn, in [0, 1)
upper: whether the window has an upper end
v: what learns; a head: the values
variance: how much noise there is
variance_epsilon: what is added to the variance
w: weights
weights: the weights of the tasks
width: half of its width, in x
window: half of its width
x: a tensor
y: a tensor
zero: the zero point; or where the gradient is 0
zero_is: whether zero is a real number, or is rounded and when
""")

EXAMPLES = _read("""
a: np.ones((3, 2))
alpha: np.full((2, 1), 1.5)
attn_attention k: np.ones((2, 4))
attn_attention q: np.ones((2, 4))
again: np.full((2, 4), 0.4)
control: lambda z: gg.sum(gg.sigmoid(z), -1)
event: lambda t, x: gg.sum(x, -1) - t
event_time f: lambda t, x: -x
event_time time: np.ones(2)
aimle noise: np.ones((2, 3, 4))
patterns: np.ones((4, 3))
attn_attention v: np.ones((2, 4))
attn_layer_norm w: np.ones(4)
attn_rms_norm w: np.ones(4)
b: np.ones((3, 2))
budget: 2.0
codebook: np.eye(4)
codebooks: np.ones((2, 3, 4))
columns: np.full(4, 0.25)
direct_feedback b: np.ones(3)
drawn: np.ones((2, 4), int)
error: np.ones((2, 5))
feedback: np.ones((5, 4))
fenchel_young noise: np.ones((2, 3, 4))
entmax15_loss target: np.array([0, 1])
imle noise: np.ones((2, 3, 4))
k: 2
levels: (5, 4, 3, 3)
limit: 1.0
log2_t: 1.0
logic_gates w: np.ones((2, 16))
logic_gates_gumbel noise: np.zeros((2, 16))
logic_gates_gumbel w: np.ones((2, 16))
logic_gates_st w: np.ones((2, 16))
low: -1.0
matrices: np.ones((2, 4, 4))
matrix: np.eye(4)
noise: np.zeros((2, 4))
orders: np.array([[0, 1, 2, 3]] * 4)
objective: np.ones((2, 1))
perturbed noise: np.ones((2, 3, 4))
perturbed_times noise: np.ones((2, 3, 4))
rows: np.full(2, 0.5)
sample: np.eye(4)[:2]
score_function sample: np.array([0, 1])
scores: np.ones((2, 4))
first: np.ones((2, 1), bool)
solve: lambda x: -x
bundled f: lambda x: x * x
bundled noise: np.ones((2, 3, 4))
f: lambda z: z / 2
start: np.ones(2)
loss: lambda b: gg.sum(b, -1)
forward: 0.3
backward: 0.6
cost: np.ones((2, 4))
solution: np.ones((2, 4))
sparse_mixer2 sample: np.array([[0], [1]])
sparse_mixer_core first: np.ones((2, 4))
sparsemax_loss target: np.array([0, 1])
target: np.full((2, 4), 2.0)
tensors: np.ones((3, 4)), np.ones(3)
threshold: np.full(4, 0.5)
times: 4
uniform: np.full((2, 4), 0.5)
jd_graddrop uniform: np.full((2, 4), 0.5)
v: np.zeros((2, 4))
w: np.ones((3, 4))
apply_mask w: np.ones((2, 4))
mask: np.ones((2, 4))
supermask w: np.ones((2, 4))
weights: np.ones(4)
x: np.ones((2, 4))
project_birkhoff x: np.ones((3, 3))
y: np.ones((2, 4))
""")

ALSO = _read("""
approx_sign: triangle(1.0, 2.0) at sign
clip_elements: clip_value
clip_global_norm_optax: clip_global_norm
deep_lift: deeplift
excitation_backprop: relevance by lrp_zplus in every layer
fake_quantise_groups: int_quant(axis=-1, group=...)
fast_soft_sort: soft_sort(method="fast_soft_sort"), the permutahedron
feedback_conv: feedback(weights)
grad_factor: scale
inv_square: fast_sigmoid
lrp_generalised_gamma: lrp_signed_gamma
neural_sort: soft_sort(method="neuralsort"); soft_argsort for the matrix
piecewise_exp: exponential
piecewise_quadratic: triangle
residual_losses: the sum of vq_commitment or vq_learned_loss of each layer
round_ste: ste at rint; so floor, ceil and sign
safe_div: divide_no_nan
slayer: exponential
soft_sort_permutahedron: soft_rank(method="fast_soft_sort")
spike_ste: ste at heaviside
svd_reconstruction: gg.linalg.svd, whose own gradient it is; pinv and slogdet likewise
vq_learned: vq_st for the value, vq_learned_loss for the codes
""")
"""Names under which a rule is published elsewhere, and what it is here."""

WITHOUT = _read("""
a2sg: asymmetric surrogates, Kang et al. 2026: neither the text nor a program says the slope
deeplift_reveal_cancel: Shrikumar et al. 2017: two multipliers a tensor, a sweep has one
""")
"""Names without a row, and why."""
