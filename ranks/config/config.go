package config

import (
	"math"
	"sync"

	"siafu/graph/size"
	"siafu/kernels"
	"siafu/kernels/model"

	"github.com/alecthomas/kong"
)

// Config has all options of a training run. The struct defines the flags of "siafu train",
// the keys of its TOML file (the flag's name without leading dashes) and the config.toml of
// a run folder.
type Config struct {
	Ranks          int     `default:"0" group:"World" help:"Ranks of an in-process world, servers included; 0 is 1. Under mpirun or srun the launcher decides and this must be left out." toml:"ranks"`
	Servers        int     `default:"-1" group:"World" help:"Parameter-server ranks. -1: one if there are three ranks or more, or two in mode async or free; 0: every rank keeps the weights and gradients are summed over all ranks." toml:"servers"`
	Parts          int     `default:"0" group:"World" help:"Parts of the graph, at least as many as graph ranks, each of which carries some of them: the same parts give the same bytes on any number of ranks. 0: one on each graph rank." toml:"parts"`
	Threads        int     `default:"0" group:"World" help:"Worker threads a rank, which its parts share. 0: this machine's processors shared by the ranks on it." toml:"threads"`
	Partitioner    string  `default:"" group:"World" help:"contiguous, hash, ldg, fennel, multilevel or file:PATH. Empty: what the dataset was partitioned with, else fennel." toml:"partitioner"`
	VertexOrder    string  `default:"" group:"World" help:"Order in which a rank numbers its vertices: auto, natural, rcm, lp or rabbit. Empty: what the dataset was partitioned with, else auto." toml:"vertex-order"`
	PartsDir       string  `name:"parts-dir" default:"" group:"World" placeholder:"DIR" help:"Where shards are looked for and made. Empty: parts of the dataset folder, or of the run folder where that may not be written to." toml:"parts-dir"`
	Mode           string  `default:"pipe" enum:"pipe,nopipe,async,free" group:"World" help:"pipe: in step, with all the overlap that the tasks allow; nopipe: one stage after another; async: intervals of vertices go on with what rows are there, within --staleness; free: each rank trains its part at its own pace, with the ghosts that others have pushed last, and the server steps when a rank's gradient comes (DIGEST-A)." toml:"mode"`
	Staleness      int     `default:"0" group:"World" help:"Epochs that an interval may be ahead of the slowest one of all ranks (async)." toml:"staleness"`
	DelayBound     int     `name:"delay-bound" default:"0" group:"World" help:"Updates of other ranks that the server may apply between two of one rank (free), as many at least as there are other graph ranks; 0: any number, so that nobody ever waits for a slow rank." toml:"delay-bound"`
	Linger         float64 `default:"1" group:"World" help:"How long a rank waits in an epoch, in all, for rows and weights of the epoch before it goes on with older ones, as a multiple of the usual time of an epoch (async). 0: it goes on at once." toml:"linger"`
	SwitchToSync   float64 `default:"0" group:"World" help:"Go on synchronously once validation accuracy is within this fraction of --target-acc (async); 0: never." toml:"switch-to-sync"`
	Intervals      int     `default:"0" group:"World" help:"Intervals of each rank's vertices, which tasks work on; 0: by their number." toml:"intervals"`
	Delay          string  `default:"" group:"World" help:"For experiments with stragglers: RANK:DURATION:SHARE lets a rank, or a part with --parts, (* is each) stand still so long before that share of its gathers." toml:"delay"`
	Refresh        string  `default:"always" group:"World" help:"Which ghosts an epoch trains with: always, those of the same epoch, which is exact; previous, those of the epoch before, and their gradients, so that nobody waits for rows on their way (PipeGCN), with moving averages (previous:F0.95, G0.95 or, by default, GF0.95), or as they come (previous:none); every:N[,LAG], those of every N-th epoch (DIGEST); sample:P, a share of them that is drawn in each epoch (BNS-GCN); delay:R, one of R groups in turn, R epochs late (DistGNN); drift:THETA[,K], blocks that have moved, and after K epochs all (SANCUS); age:N[,DECAY], those of a pass of their own before every N-th epoch, which weigh less with age (REST, VISAGNN); never, without ghosts: each rank trains on the edges between its own vertices, and ranks share nothing but weights; auto, where ghosts cost time none while accuracy rises, and then those of the same epoch. Evaluations are exact." toml:"refresh"`
	GhostGradients string  `name:"ghost-gradients" default:"yes" enum:"yes,no" group:"World" help:"Whether gradients of ghosts go home to the vertices' owners, as training that is exact needs; no: rows of ghosts are constants, as in DIGEST." toml:"ghost-gradients"`
	Codec          string  `default:"none" group:"World" help:"How ghost rows travel: none, zeros, which leaves out the zeros of ReLU and dropout, s2, zstd (exact); bf16, int8, int4, adaptive[:BITS], polyline[:DECIMALS], each with +s2 or +zstd to compress it too and +ef to feed errors back. auto: the fastest on these links, found out in the first epochs, that loses no more than int4 does; auto:int8, auto:bf16, auto:lossless: no more than these." toml:"codec"`
	PreAggregate   string  `default:"auto" enum:"auto,on,off" group:"World" help:"Add up rows of ghosts before they are sent where that makes fewer of them: on; off; auto, where it saves 5 % of the rows between two ranks and the price of the sums. Not with attention, not in async." toml:"pre-aggregate"`
	Tensor         string  `default:"cpu" enum:"cpu,cuda,lambda" group:"World" help:"Where tensor work runs: cpu, on the ranks; cuda, on GPUs, and graph work with it unless --graph cpu; lambda, in invocations of a function, with --lambda." toml:"tensor"`
	GraphWork      string  `name:"graph" default:"" enum:",cpu,cuda" group:"World" help:"Where graph work runs, beside what --tensor says: cpu, on the ranks; cuda, on GPUs, with --tensor cuda. Empty: on GPUs with --tensor cuda, else on the ranks." toml:"graph"`
	CUDABLAS       string  `name:"cuda-blas" default:"auto" enum:"auto,cublas,own" group:"World" help:"Whose dense products of float32 --tensor cuda takes: auto, cuBLAS's where this host has it, else siafu's own; cublas; own." toml:"cuda-blas"`

	MeasureStaleness int `name:"measure-staleness" default:"0" group:"World" help:"Every so many epochs, measure how far the ghosts of --refresh are from those of the same epoch, how old they are, and how far the gradient is from the exact one: one more pass forward and back, which changes nothing of the run. 0: never." toml:"measure-staleness"`

	Batch         string `name:"batch" default:"full" group:"Training" help:"What an update of the weights is made from: full, all vertices; history:N, one of N mini-batches of each rank's vertices, in which rows of all others come from a history of what batches have made of them (GNNAutoScale, ICML'21); variates:N,D, the same of training vertices drawn at random, with D sampled neighbours each and the history for the rest (VR-GCN, ICML'18), of gcn; neither of the two with gat or gatv2, nor with dropout of the input; neighbor:D1,D2[,SIZE], SIZE (1000) training vertices of each rank with D1 sampled neighbours of a vertex in the first layer, D2 in the second and so on (GraphSAGE, NIPS'17; DGL's sampling); cluster:N[,Q], Q (1) of N clusters of each rank's vertices, and the edges between these alone (Cluster-GCN, KDD'19)." toml:"batch"`
	DrawnSteps    int    `kong:"-" toml:"-"` // Divide
	HistoryFormat string `name:"history-format" default:"float32" enum:"float32,bf16,int8" group:"Training" help:"How a history keeps rows, and how they travel: float32; bf16; int8, on a grid of each row's own." toml:"history-format"`

	Bridges        int    `default:"0" group:"World" help:"Bridge ranks, through which graph ranks have functions invoked with --tensor lambda, behind the servers. 0: every graph rank invokes by itself." toml:"bridges"`
	Lambda         string `default:"" enum:",local,aws" group:"World" help:"Whose functions --tensor lambda invokes: local, processes on this machine behind an implementation of AWS Lambda; aws, AWS Lambda itself, which costs money." toml:"lambda"`
	LambdaFunction string `name:"lambda-function" default:"" group:"World" help:"The function: with --lambda aws its name or ARN; with --lambda local its executable. Empty: siafu, or the executable that was built or installed with the program." toml:"lambda-function"`
	LambdaMemory   int    `name:"lambda-memory" default:"192" group:"World" help:"Memory of an invocation in MB, 128 to 10240. The service gives processors in proportion, one at 1,769 MB, and charges for it." toml:"lambda-memory"`
	LambdaArch     string `name:"lambda-arch" default:"" enum:",x86_64,arm64" group:"World" help:"Architecture of the function of --lambda aws, which its price depends on: x86_64 or arm64. Empty: that of this machine." toml:"lambda-arch"`
	LambdaAtOnce   int    `name:"lambda-at-once" default:"0" group:"World" help:"Invocations that a graph rank has under way at a time. 0: as many as keep the queue of its graph tasks from growing and from running empty, at first one an interval and 100 at most; with --lambda local two a worker at most." toml:"lambda-at-once"`
	LambdaLimits   string `name:"lambda-limits" default:"none" enum:"none,memory,aws" group:"World" help:"Limits of the sandboxes of --lambda local: none; memory, --lambda-memory; aws, such as the service has: memory, its share of a processor, bandwidth, cold starts, new sandboxes in a time." toml:"lambda-limits"`
	LambdaFaults   string `name:"lambda-faults" default:"" group:"World" help:"Faults of --lambda local by chance, as shares of the invocations: seed=1,crash=0.1,late=0.05,delay=1s,lose=0.05,throttle=0.1,duplicate=0.05,corrupt=0.05,straggle=0.05,start=0.05." toml:"lambda-faults"`
	BridgeAddress  string `name:"bridge-address" default:"" group:"World" help:"LISTEN[,ADVERTISED], each host:port: where invoked functions get their tasks and bring results, and the address that they are told. Without a host all addresses are listened on, and functions told the machine's own. Port 0 is a free one, and so fits ranks that share a machine. Needed with --lambda aws; empty with --lambda local: 127.0.0.1:0." toml:"bridge-address"`
	LambdaCodec    string `name:"lambda-codec" default:"float32" group:"World" help:"How values and dense features travel to functions, and values back: float32, as they are; zeros, without the zeros of ReLU and dropout, s2, zstd (exact); bf16, int8, int4, adaptive[:BITS], polyline[:DECIMALS], each with +s2 or +zstd to compress it too. Weights and their gradients travel as they are." toml:"lambda-codec"`
	LambdaWithout  string `name:"lambda-without" default:"" group:"World" help:"Optimisations of tasks for functions to leave out, for measurements, separated by commas: fusion, stages between which nothing is gathered as one task; rematerialisation, of what need not be sent; streaming, in halves of the rows." toml:"lambda-without"`

	Kernel    string `default:"auto" enum:"auto,avx512,avx2,openblas,go" group:"World" help:"Which kernels compute: auto times those that this machine and build have; openblas needs a build with that tag." toml:"kernel"`
	Precision string `default:"float32" enum:"float32,mixed" group:"World" help:"float32; mixed: bfloat16 where memory holds an epoch up, --gather bf16 --features bf16, and float32 for all sums, products and weights." toml:"precision"`
	Gather    string `default:"" enum:",float32,bf16" group:"World" help:"Rows as they are gathered: float32, or rounded to bfloat16 first (bf16), which is faster where memory holds the gather up; sums stay float32. Empty: as --precision says." toml:"gather"`
	Features  string `default:"" enum:",float32,bf16" group:"World" help:"What --cache-input keeps: float32, or bfloat16 (bf16) in half the memory. Empty: as --precision says." toml:"features"`

	Model            string  `default:"gcn" enum:"gcn,sage,sage-max,sage-pool,gin,gat,gatv2,mlp,gcnii,appnp,sgc,sign" group:"Model" help:"gcn: Kipf & Welling 2017; sage: GraphSAGE with the mean of all neighbours, sage-max: with the maximum of each column, sage-pool: with that of what a perceptron makes of their rows; gin: GIN-0; gat: Veličković et al. 2018; gatv2: Brody et al. 2022, whose scores see both ends of an edge at once, and its weight where edges have one; mlp: gcn's layers without the graph (with --layers 1: a linear model); gcnii: --layers layers with initial residuals between two of mlp, for great depth (Chen et al. 2020); appnp: mlp, and then --hops steps of propagation (Gasteiger et al. 2019); sgc: one matrix and --layers steps (Wu et al. 2019); sign: the features and what --steps powers of the graph make of them, a matrix each, side by side, and --layers - 1 of mlp (Frasca et al. 2020)." toml:"model"`
	Layers           int     `default:"2" group:"Model" help:"Number of layers." toml:"layers"`
	Embedding        int     `default:"16" group:"Model" help:"Width of the last layer, whose rows are vertices' embeddings, with --task links." toml:"embedding"`
	LinkScore        string  `name:"link-score" default:"dot" enum:"dot,mlp" group:"Model" help:"How two embeddings make the logit of an edge, with --task links. dot: by their dot product; mlp: by a perceptron on their products column by column, as LinkPredictor of OGB's examples." toml:"link-score"`
	LinkLayers       int     `name:"link-layers" default:"3" group:"Model" help:"Layers of that perceptron." toml:"link-layers"`
	LinkHidden       int     `name:"link-hidden" default:"64" group:"Model" help:"Width of its hidden layers." toml:"link-hidden"`
	LinkDropout      float64 `name:"link-dropout" default:"-1" group:"Model" help:"Probability to drop an output of its hidden layers while training; -1: as --dropout." toml:"link-dropout"`
	Hidden           int     `default:"16" group:"Model" help:"Width of the hidden layers." toml:"hidden"`
	Dropout          float64 `default:"0.5" group:"Model" help:"Probability to drop an input of a layer while training." toml:"dropout"`
	InputDropout     float64 `default:"-1" group:"Model" help:"The same for the first layer, whose inputs are the features; -1: as --dropout, and 0 with mini-batches. With 0 the product of graph and features is computed only once." toml:"input-dropout"`
	InputScale       float64 `name:"input-scale" default:"1" group:"Model" help:"Train as though features were so many times as large: the weights that multiply them begin that much larger, learn as much faster, and are penalised as much less. For features that are far from 1; files are as ever." toml:"input-scale"`
	PoolHidden       int     `name:"pool-hidden" default:"0" group:"Model" help:"Width of the perceptron before the maximum (sage-pool); 0: as wide as the layer's input, as in PyTorch Geometric and DGL." toml:"pool-hidden"`
	Activation       string  `default:"auto" enum:"auto,relu,elu,gelu,leaky,prelu" group:"Model" help:"Of hidden layers (gcn, sage, gin, gat, gatv2, mlp). gelu: x times the normal distribution's function of x; leaky: a slope of 0.01 below zero; prelu: a learned one, of each layer; auto: relu, and elu for gat and gatv2." toml:"activation"`
	Norm             string  `default:"off" enum:"off,layer,batch,pair,l2,ball" group:"Model" help:"Normalisation of hidden layers before their activation (gcn, sage, gin, gat, gatv2, mlp). layer: of each row; batch: of each column over the vertices of all ranks, and by running means where nothing is trained; pair: PairNorm (Zhao & Akoglu 2020); l2: each row divided by its L2 norm, of the last layer too, as SAGEConv(normalize=True) of PyTorch Geometric; ball: by those norms that are above 1 (neither for gat and gatv2). batch and pair need synchronous training that is exact." toml:"norm"`
	Jumping          string  `default:"off" enum:"off,cat,max" group:"Model" help:"Jumping knowledge (gcn, sage, gin, gat, gatv2, mlp): all --layers layers are hidden ones, and a product behind them takes what each has made, cat, side by side, or max, the largest of each element (Xu et al. 2018)." toml:"jumping"`
	Residual         string  `default:"none" enum:"none,add,initial" group:"Model" help:"What hidden layers behind the first take of earlier ones (gcn, sage, gin, gat, gatv2, mlp). add: the one before's output is added; initial: a share --alpha of the first one's is mixed in." toml:"residual"`
	Alpha            float64 `default:"0.1" group:"Model" help:"Share of the first rows in each layer (gcnii, --residual initial) or step (appnp)." toml:"alpha"`
	Theta            float64 `default:"0.5" group:"Model" help:"How fast the weights of layer L fade with depth: their share is ln(theta/L + 1) (gcnii)." toml:"theta"`
	Hops             int     `default:"10" group:"Model" help:"Steps of propagation behind the layers (appnp)." toml:"hops"`
	Powers           int     `default:"3" name:"steps" group:"Model" help:"Powers of the graph beside the features themselves (sign)." toml:"steps"`
	Heads            int     `default:"1" group:"Model" help:"Attention heads of hidden layers (gat, gatv2); each is --hidden wide." toml:"heads"`
	OutputHeads      int     `name:"output-heads" default:"1" group:"Model" help:"Attention heads of the last layer (gat, gatv2), whose mean is taken." toml:"output-heads"`
	AttentionDropout float64 `default:"-1" group:"Model" help:"Probability to drop an edge from an attention head while training (gat, gatv2); -1: as --dropout." toml:"attention-dropout"`
	Init             string  `default:"" group:"Model" placeholder:"FILE" help:"Start from the weights of a file: safetensors, or a state dict of PyTorch, of the network that export writes or with the names of PyTorch Geometric's layers." toml:"init"`
	Initializer      string  `default:"auto" enum:"auto,xavier,he,torch,small-logits" group:"Model" help:"Random initial weights: xavier, he, torch (what PyTorch's Linear starts with) or small-logits (torch, but logits begin near zero); auto: what was measured to be best for the model." toml:"initializer"`
	Order            string  `default:"auto" enum:"auto,gather-first,apply-first" group:"Model" help:"(ÂH)W is gather-first, Â(HW) apply-first; auto takes the cheaper by shape." toml:"order"`
	CacheInput       string  `default:"auto" enum:"auto,on,off" group:"Model" help:"Compute the input layer's ÂX once and keep it; of sgc Â to the power of --layers times X, of sign each power to that of --steps. auto: when it pays and fits in memory." toml:"cache-input"`
	GhostFeatures    string  `default:"auto" enum:"auto,kept,sent" group:"Model" help:"Keep the features of other ranks' vertices that are gathered from, and make their rows in the first layer from these, with the same dropout: it then exchanges nothing. auto: where that layer gathers first, or features have few non-zeros; sent: exchange rows in every epoch." toml:"ghost-features"`
	Recompute        bool    `group:"Model" help:"Make activations again on the way back instead of keeping them, where that saves memory: an epoch computes up to twice as much forward, and gathers and sends no more. siafu plan --recompute foretells the memory. Not in async." toml:"recompute"`

	Defaults string   `default:"auto" enum:"auto,fixed" group:"Training" help:"Flags that are not given. auto: some of them as the graph suggests, by its size, its split and the scale of its features; the log and summary.json say which. fixed: as this table says." toml:"defaults"`
	Recipe   string   `default:"" group:"Training" placeholder:"NAME" help:"Settings of a published run: siafu help recipes lists them, with what they reach. Flags that are given win." toml:"recipe"`
	Chosen   []Choice `kong:"-" toml:"-"` // Suit

	Task             string  `default:"" enum:",multiclass,multilabel,regression,links" group:"Training" help:"What to train for: multiclass, one class a vertex, by cross entropy; multilabel, any number of labels, by sigmoid cross entropy; regression, numbers, by squared errors; links, whether two vertices have an edge, by cross entropy of the products of their embeddings (siafu holdout). Empty: what the dataset is for." toml:"task"`
	LabelSmoothing   float64 `name:"label-smoothing" default:"0" group:"Training" help:"Share of each target that goes to all classes alike (Szegedy et al. 2016)." toml:"label-smoothing"`
	ClassWeights     string  `name:"class-weights" default:"" group:"Training" placeholder:"balanced|root|off|NAME=W,…|W,W,…" help:"What vertices of each class weigh in the loss: balanced, so that classes weigh alike, or with multilabel ones as much as zeros; root, the root of these weights; weights of classes by name, as fraud=10,legit=1, and 1 for the others; a list with a number for each class; empty or off: all the same." toml:"class-weights"`
	Epochs           int     `default:"200" group:"Training" help:"Epochs to train." toml:"epochs"`
	LR               float64 `name:"lr" default:"0.01" group:"Training" help:"Learning rate." toml:"lr"`
	Optimizer        string  `default:"adam" enum:"sgd,adam,adamw" group:"Training" help:"sgd, adam or adamw." toml:"optimizer"`
	Momentum         float64 `default:"0.9" group:"Training" help:"Momentum of sgd." toml:"momentum"`
	WeightDecay      float64 `default:"5e-4" group:"Training" help:"L2 penalty on weight matrices (adamw: decoupled decay)." toml:"weight-decay"`
	InnerDecay       float64 `name:"inner-decay" default:"0.01" group:"Training" help:"L2 penalty on the matrices of gcnii's layers between the first and the last, in place of --weight-decay." toml:"inner-decay"`
	WeightDecayOn    string  `default:"first" enum:"first,all" group:"Training" help:"Layers that the penalty covers: the first, as in Kipf & Welling 2017, or all." toml:"weight-decay-on"`
	Seed             uint64  `default:"1" group:"Training" help:"Seed of initial weights and dropout." toml:"seed"`
	EvalEvery        int     `default:"1" group:"Training" help:"Epochs between two evaluations; 0: only at the end." toml:"eval-every"`
	Patience         int     `default:"0" group:"Training" help:"Stop after this many epochs in which what --monitor names has not improved; 0: never." toml:"patience"`
	Monitor          string  `aliases:"patience-on" default:"accuracy" enum:"accuracy,loss,both,penalised,balanced_accuracy,micro_f1,macro_f1,weighted_f1,roc_auc,mse,mae,r2,average_precision,mrr,hits@10,hits@20,hits@50,hits@100,f1_micro,f1_macro,f1_weighted,auc" placeholder:"METRIC" group:"Training" help:"What chooses the best weights, and what --patience waits for, over the validation vertices: accuracy, or the score that the task has in its place; loss, the lowest; both: accuracy or loss as good as ever, as in GAT's own program; penalised: the lowest sum of loss and penalty of --weight-decay, as in Shchur et al. 2018; or a metric by its name in summary.json, such as balanced_accuracy, macro_f1 (or f1_macro) or roc_auc (or auc). --patience-on is its old name." toml:"monitor"`
	LocalEpochs      int     `name:"local-epochs" default:"0" group:"Training" help:"Epochs for which each rank steps weights of its own with gradients of its own, before weights and the optimiser's state are averaged over the ranks; 0: ranks add up gradients in every epoch and have the same weights." toml:"local-epochs"`
	ServerCorrection int     `name:"server-correction" default:"0" group:"Training" help:"Steps of all ranks together behind each averaging of --local-epochs, with the exact gradient of a mini-batch of the training vertices and all of their neighbours (LLCG); 0: none." toml:"server-correction"`
	CorrectionBatch  int     `name:"correction-batch" default:"0" group:"Training" help:"Training vertices in the mini-batch of such a step, on average; 0: all." toml:"correction-batch"`
	TargetAcc        float64 `default:"0" group:"Training" help:"Stop when this validation accuracy is reached (a fraction); 0: never." toml:"target-acc"`

	CheckpointEvery string `default:"10m" group:"Checkpoints" help:"How often the run saves itself: 20e (epochs), 10m, 90s; off. At its end it saves too." toml:"checkpoint-every"`
	Keep            int    `default:"3" group:"Checkpoints" help:"Checkpoints to keep; 0: all." toml:"keep"`
	Resume          string `default:"" group:"Checkpoints" placeholder:"auto|PATH" help:"Go on from a checkpoint: auto takes the newest of --out, if there is one; PATH is a checkpoint or a run folder." toml:"resume"`
	Grace           string `default:"0s" group:"Checkpoints" help:"Time from a SIGTERM to the kill, to warn if an epoch takes longer; 0s: as the batch system says." toml:"grace"`

	Out         string `default:"" group:"Output" placeholder:"DIR" help:"Run folder. Empty: runs/NAME-ID." toml:"out"`
	Force       bool   `group:"Output" help:"Replace a run folder that exists." toml:"force"`
	ForceMemory bool   `name:"force-memory" group:"Output" help:"Train although the forecast says that memory will not do." toml:"force-memory"`
	Trace       string `default:"" group:"Output" placeholder:"FILE" help:"Write a timeline of the tasks of all ranks, for ui.perfetto.dev, chrome://tracing and bench breakdown." toml:"trace"`
	TensorBoard bool   `name:"tensorboard" group:"Output" help:"Write the numbers of each epoch as a TensorBoard event file too, events.out.tfevents.siafu in the run folder." toml:"tensorboard"`
	Quiet       bool   `group:"Output" help:"Print only the final lines." toml:"quiet"`
	Instance    string `default:"" group:"Output" placeholder:"TYPE|USD" help:"What each host of the run is: an EC2 instance type, such as c5n.2xlarge, or its dollars an hour. The run then says what it has cost, and its value. Empty: costs are not counted." toml:"instance"`
	Budget      string `default:"" group:"Output" placeholder:"USD" help:"Stop with a checkpoint and exit code 75 before the run costs this many dollars, with its parts before a checkpoint: its hosts by --instance, and the invocations of --tensor lambda. Empty: without end." toml:"budget"`
	StallWarn   string `default:"60s" group:"Output" help:"Say so when a rank has waited this long for others." toml:"stall-warn"`
	StallAbort  string `default:"10m" group:"Output" help:"End the job when a rank has waited this long for others." toml:"stall-abort"`
}

// Random draws number layers with 16 bits, a few of which tell what is drawn,
// and epochs with 32.
const (
	mostLayers = 65_000
	mostEpochs = math.MaxInt32
	mostParts  = math.MaxInt32 // vertices have ids of 32 bits
)

// MostStaleness returns how many epochs an interval can be ahead; it never exceeds the
// number of epochs.
func (c *Config) MostStaleness() int { return min(c.Staleness, c.Epochs) }

// OptimizerConfig returns the settings of the optimiser.
func (c *Config) OptimizerConfig() kernels.OptimizerConfig {
	return kernels.OptimizerConfig{
		Name: c.Optimizer, LR: c.LR, Momentum: c.Momentum, WeightDecay: c.WeightDecay, InnerDecay: c.InnerDecay, InputScale: c.InputScale,
		Beta1: 0.9, Beta2: 0.999, Eps: 1e-8,
	}
}

// kind is the kind of network alone.
func (c *Config) kind() model.Spec { return model.Spec{Kind: c.Model} }

// Network returns the network that the options describe.
func (c *Config) Network(features, classes int) model.Spec {
	hidden := c.Hidden
	if c.kind().Attends() {
		hidden = size.Product(hidden, c.Heads)
	}
	input := c.InputDropout
	switch {
	case input < 0 && c.Batches() > 0 && !c.Batching().Draws():
		input = 0
	case input < 0:
		input = c.Dropout
	}
	s := model.Spec{
		Kind: c.Model, Design: c.design(), Dropout: c.Dropout,
		InputDropout: input, Seed: c.Seed,
	}
	if c.kind().Attends() {
		s.Heads, s.OutputHeads, s.AttentionDropout = c.Heads, c.OutputHeads, c.AttentionDropout
		if c.AttentionDropout < 0 {
			s.AttentionDropout = c.Dropout
		}
	}
	s.Dims = s.Widths(c.Layers, features, hidden, classes)
	return s
}

// Defaults returns the configuration with all default values of the struct's tags.
func Defaults() Config { return defaults() }

var defaults = sync.OnceValue(func() Config {
	var c Config
	if err := kong.ApplyDefaults(&c); err != nil {
		panic("config: a default does not fit its field")
	}
	c.Gather, c.Features = "", "" // kong has validated them, and --precision is resolved later
	return c
})
