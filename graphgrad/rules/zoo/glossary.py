"""What parameters of rows mean, by name or by row and name; and what an example gives for them."""


def _read(text: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in text.strip().split("\n"))


WORDS = _read("""
a: the first input of the gates, a probability
above: the relative width above the threshold
activation: the function applied first
adaround v: the learned part that decides the rounding
again: a second draw of uniform numbers
aimle alpha: the relative strength
alpha: the steepness
around: whether one straight-through step covers all layers
at_zero: the slope at 0
atan alpha: the steepness
atol: the absolute tolerance
attn_attention k: the keys
attn_attention kind: the variant of the rule
attn_attention q: the queries
attn_attention scale: the factor of the scores
attn_attention v: the values
attn_divide factor: the divisor of the gradient
attn_identity f: the activation
axis: the axis along which the rule acts
b: the bias
backward: the temperature of the backward pass
band: half the width of the band that passes gradients
bandwidth: the width of the rectangle at the threshold
baseline: the baseline that scores are compared with
batch_topk_relu k: the number of elements per example that are kept
beta: the steepness
bits: the number of bits of a value
budget: the sum of the result
byzantine: the number of gradients that may be wrong
c: the slope outside
carries: the factors that carry relevance
centre: the middle of the interval
circ_step alpha: the width
clamp: the largest magnitude of a smooth clamp
clamped: whether the gradient is zero outside of the clamp
clip: the largest magnitude that passes gradients
codebook: the codes (codes, features)
codebooks: the codes of each layer (layers, codes, features)
columns: the sums of the columns
commitment: the weight of the term that pulls x towards its code
control: a control variate, a function of logistic samples that returns tensors
cost: the true costs
damping: the size of each step
delta: the strength of the correction
density: the density of the noise
descending: whether the largest comes first
distance: half the width of the interval
distribution: the distribution that smooths a swap
drawn: the drawn bits
ede k: the factor of the slope
edges: on which side of an edge the edge itself is
entmax alpha: the sparsity, 1 for softmax and 2 for sparsemax
entmax_learned alpha: the sparsity, 1 for softmax and 2 for sparsemax
epsilon: a small number that prevents division by 0
error: the error of the output
errors: the number of skipped steps in a row after which gradients pass
eta: the weight of the control variate
event: a function of time and states that returns tensors
f: the function
factor: the factor of the gradient
fake_float8_rows backward: whether the gradient is quantised too
fake_numerical_gradient alpha: the largest slope
feedback: fixed weights
first: the draw of the first branch
format: the 8-bit floating-point format
forward: the temperature of the draw
gain: the factor of the preceding normalisation
gamma: the extra weight of contributions with the sign of the sum
gap: the lead of the drawn class
gated: whether the smooth form is x times a smooth step
group: the number of neighbours along the last axis that share a step
h: the weight of the wide densities
halves: the rounding of ties
hard: whether a clip replaces the tanh
height: the gradient at 0
high: the upper bound
inside: whether the exact or the rounded value decides what is inside the range
iterations: the number of iterations
jd_aligned_mtl scale: the common length of the principal components
jd_cagrad c: the distance from the mean, relative to its norm
jd_graddrop leak: the share of the dropped sign that passes
jd_mgda epsilon: the step size at which the iteration stops
jitter: the distance from the best within which an expert may be drawn
k: the steepness
layers: the number of layers
leak: the slope below the threshold
leaky_step k: the slope above the threshold
learns: whether the scale is differentiated
least: the smallest value that is used
levels: the number of levels
limit: the bound
log2_t: the base-2 logarithm of the threshold
log_tailed alpha: the slope below the threshold
logic_gates b: the second input of the gates, a probability
logic_gates w: the weights of the gates
logic_gates_gumbel b: the second input of the gates, a probability
logic_gates_gumbel w: the weights of the gates
logic_gates_st b: the second input of the gates, a probability
logic_gates_st w: the weights of the gates
loss: a function of bits that returns tensors
low: the lower bound
mask: the mask
matrices: the matrix of each layer
matrix: the matrix that transforms the codebook
mean: the mean of the noise
meprop k: the number of elements that are kept
method: the sorting method
mode: the smoothness of the step
most: the largest slope
mu: the centre
n: the number of terms
nan: the replacement for NaN
narrow: whether the smallest integer is not used
negative: the scale of negative numbers
network: the pairs that are compared
noise: a draw of the noise
norm: the order of the norm
nu: the extra weight of the gradient
objective: the cost of the true solution, (..., 1)
of_square: whether epsilon bounds the squared norm
orders: for each gradient, a permutation of all gradients
over: the axis of the sum, if it is another one
p: the order of the root
patterns: the pattern that the weights are multiplied by
period: the length of a period
phantom layers: the number of damped steps
phi: the exponent
piecewise_leaky w: half the width of the window
positive: the scale of positive numbers
power_of_two high: the largest exponent
power_of_two low: the smallest exponent
pull: the weight of the term that pulls the code towards x
q: the quantile
q_pseudo_spike alpha: the exponent
radius: the radius
rate: the share of elements that are dropped
rate_escape slope: the largest slope
reward: the reward of the sample
rotation: whether the gradient is rotated
rows: the sums of the rows
rtol: the tolerance relative to the second input
s2nn beta: the slope above the threshold
s: the relative width of the wide densities
sample: the drawn sample
scale: the scale
scores: the scores by which elements are selected
selected: the number of gradients that are averaged
sense: whether the solver minimises or maximises
shake a: the first branch
shake b: the second branch
shake backward: the drawn weight of a in the backward pass
shake forward: the drawn weight of a in the forward pass
shift: the number that is added to alpha
side: the side that passes gradients
sigma: the width
skipped: the number of steps in a row that were skipped
slope: the steepness
soft_equal epsilon: a small shift that decides ties
soft_greater epsilon: a small shift that decides ties
soft_greater_equal epsilon: a small shift that decides ties
soft_isclose epsilon: a small shift that decides ties
soft_less epsilon: a small shift that decides ties
soft_less_equal epsilon: a small shift that decides ties
soft_not_equal epsilon: a small shift that decides ties
soft_round radius: the number of steps on either side
soft_top_k k: the number of elements
softness: the width of the smooth step
solution: the true solution
solve: a solver, a function of costs that returns tensors
sparsity: the share of elements that are left out
squared: whether the distance is squared
standardised: whether x is standardised and squashed first
start: the initial value of the iteration
steepness: the steepness
step: the step size
strength: the distance by which the costs are moved
super_spike alpha: the height
symmetric: whether the grid is symmetric
t: the steepness
target: the target
tau: the share of a potential that remains
temperature: the temperature
tensors: the tensors whose gradients are changed together
threshold: the threshold
time: the time of the event
times: the number of tasks that read x
to_input: whether x gets the gradient of the step, too
topk_relu k: the number of elements that are kept
trim: the number of values that are left out at each end
ttq threshold: the threshold
two_sides: whether the solver is called on both sides
undefined: the gradient where the derivative does not exist
uniform: uniform random numbers in [0, 1)
upper: whether the window has an upper end
v: the learned part
variance: the variance of the noise
variance_epsilon: a small number that is added to the variance
w: weights
weights: the weights of the tasks
width: half of the width, in units of x
window: half of the width of the window
x: a tensor
xlogy zero: the inputs whose zeros give the gradient 0
y: a tensor
zero: the zero point
zero_is: whether the zero point is a real number or rounded, and when
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
