package config

import (
	"iter"
	"reflect"
	"slices"
	"sync"
)

// RankOptions describe the ranks, the partitions of the graph and the schedule of an epoch.
type RankOptions struct {
	Ranks        int     `default:"0" usual:"Ranks of an in-process world, servers included" help:"Number of ranks of an in-process world, servers included; 0: 1. Omit it under mpirun or srun, where the launcher sets it." range:"0.." toml:"ranks"`
	Servers      int     `default:"-1" help:"Number of parameter-server ranks. -1: one with three or more ranks, or with two in mode async or free; with --pipeline, the ranks beyond its stages. 0: every rank stores the weights, and gradients are summed over all ranks." range:"-1.." toml:"servers"`
	Parts        int     `default:"0" usual:"Number of partitions; 0: one for each graph rank" help:"Number of graph partitions, at least the number of graph ranks. The same partitions give the same bytes on any number of ranks. 0: one for each graph rank." range:"0..2147483647" toml:"parts"`
	Threads      int     `default:"0" help:"Worker threads of each rank, shared by its partitions. 0: the machine's processors divided by the ranks on it." range:"0.." toml:"threads"`
	Partitioner  string  `default:"" usual:"Partitioner: fennel, multilevel, hash, file:PATH, …" values:"partitioners" help:"Partitioner: ${partitioners=}. Empty: the partitioner that the dataset was partitioned with, else ${partitioner=}." toml:"partitioner"`
	VertexOrder  string  `default:"" help:"Vertex order within a rank: auto, natural, lp or rabbit. Empty: the order that the dataset was partitioned with, else auto." toml:"vertex-order"`
	PartsDir     string  `name:"parts-dir" default:"" placeholder:"DIR" help:"Folder in which shards are found or created. Empty: parts in the dataset folder, or in the run folder if the dataset folder is read-only." toml:"parts-dir"`
	Mode         string  `default:"pipe" enum:"pipe,nopipe,async,free" usual:"Schedule: pipe, nopipe, async or free" help:"Schedule: pipe, nopipe, async or free. pipe: synchronous with overlap; nopipe: one stage after another; async: bounded staleness; free: each rank asynchronous, with the newest received ghost rows (DIGEST-A)." toml:"mode"`
	Staleness    int     `default:"0" help:"Epochs that an interval may be ahead of the slowest one (async). The slowest interval is that of all ranks." range:"0.." part:"mode" toml:"staleness"`
	DelayBound   int     `name:"delay-bound" default:"0" help:"Server updates allowed between two updates of one rank (free). At least the number of other graph ranks. 0: unlimited; no rank waits for a slow rank." range:"0.." part:"mode" toml:"delay-bound"`
	Linger       float64 `default:"1" help:"Total wait of a rank for new rows and weights in an epoch (async). Unit: the usual time of an epoch. Afterwards the rank uses older rows and weights; 0: no wait." range:"0.." part:"mode" toml:"linger"`
	SwitchToSync float64 `default:"0" help:"Switch to synchronous training near --target-acc (async); 0: never. Value: distance of validation accuracy from --target-acc, as a fraction." range:"0..1" part:"mode" toml:"switch-to-sync"`
	Intervals    int     `default:"0" help:"Intervals of each rank's vertices, on which tasks work. 0: chosen from the number of vertices." range:"0.." toml:"intervals"`
	Delay        string  `default:"" help:"Artificial stragglers for experiments, as RANK:DURATION:SHARE. The rank (* is every rank; a partition with --parts) sleeps for DURATION before a fraction SHARE of its gathers." toml:"delay"`
	Survive      bool    `default:"false" help:"Continue after the loss of ranks, from the state of the epoch before: the parts of lost ranks move to others. Needs an MPI launcher that does not end the job when a rank ends: siafu launch, or mpirun --enable-recovery." toml:"survive"`
	Spares       int     `default:"0" help:"Ranks that wait to replace lost ones." range:"0.." part:"survive" toml:"spares"`
	LeastRanks   int     `name:"least-ranks" default:"1" help:"Ranks that must be left to continue after a loss. With fewer, the run saves a checkpoint after an epoch and stops (exit code 75)." range:"1.." part:"survive,least" toml:"least-ranks"`
	Notice       string  `default:"" placeholder:"COMMAND" help:"Shell command that each rank runs every two seconds. When it succeeds, such as when the cloud has announced the end of this machine, the rank leaves after the epoch." part:"survive" toml:"notice"`
	Zones        string  `default:"" placeholder:"FILE" help:"File with lines \"HOST ZONE\". Copies of a rank's states are in another zone. Empty: each host is a zone." part:"survive" toml:"zones"`
	LostAfter    string  `name:"lost-after" default:"3s" help:"Silence after which a rank is lost, such as that of a host that was cut off. The end of a process is noticed at once." part:"survive" toml:"lost-after"`
	Listen       string  `default:"" placeholder:"CIDR" help:"IP network, such as 10.0.0.0/16, on which ranks accept connections of others and of siafu join. Empty: only this machine if all ranks are on it, else all networks." part:"survive" toml:"listen"`
	StallWarn    string  `default:"60s" help:"Wait of a rank for others after which it prints a warning." toml:"stall-warn"`
	StallAbort   string  `default:"10m" help:"Wait of a rank for others after which the job ends." toml:"stall-abort"`
}

// ExchangeOptions describe how ranks exchange ghost rows.
type ExchangeOptions struct {
	Refresh          string  `default:"always" usual:"Ghost rows: always, every:N, previous, never, …" values:"policies" help:"Ghost rows of an epoch: ${policies=}. always is exact, and so are evaluations; see docs/training.md." toml:"refresh"`
	GhostGradients   string  `name:"ghost-gradients" default:"yes" enum:"yes,no" help:"Send gradients of ghost rows to their owners: yes or no. Exact training needs yes. no: ghost rows are constants, as in DIGEST." part:"refresh,gradients" toml:"ghost-gradients"`
	Codec            string  `default:"none" usual:"Codec of ghost rows: none, int8, int4, bf16, auto, …" values:"codecs" help:"Codec of ghost rows: ${codecs=}. ${automatic=}: the fastest one, by measurement." toml:"codec"`
	PreAggregate     string  `default:"auto" enum:"auto,on,off" help:"Sum ghost rows before sending: auto, on or off. auto: where this saves 5 % of the rows between two ranks and the cost of the sums. Not with attention or async." toml:"pre-aggregate"`
	RecomputeGhosts  string  `name:"recompute-ghosts" aliases:"ghost-features" default:"auto" help:"Ghost rows that a rank computes itself: auto, all, none or layers:N. layers:N: in the first N layers that gather, which then exchange nothing; with a fraction, as in layers:1.5, part of the ghosts of the last one, those with the fewest edges; none: rows are received. auto: the cheapest of them. --ghost-features is an alias." toml:"recompute-ghosts"`
	Predict          string  `default:"off" values:"predictions" help:"Prediction of ghost rows in place of stale ones: ${predictions=} (SAT). transfer: an affine map fitted to a rank's own rows in each epoch; momentum:B: a moving average of the history of --batch history:N (GraphFM-OB). Others need a --refresh with stale rows, or --batch history:N or variates:N,D." toml:"predict"`
	PredictRows      int     `name:"predict-rows" default:"0" help:"Most own rows of a rank from which the prediction learns, every eighth for a check of the error. A layer needs twice its width. 0: 32 times the largest width of a predicted row." range:"0.." part:"predict" toml:"predict-rows"`
	PredictHistory   string  `name:"predict-history" default:"none" values:"histories" help:"Format of stored own rows of earlier epochs: ${histories=}. auto: units of the largest power of two with an error below 0.5 % of the change of the rows." part:"predict" toml:"predict-history"`
	PredictEvery     int     `name:"predict-every" default:"10" help:"Epochs between two trainings of a recurrent network (ΔT of SAT)." range:"1.." part:"predict" toml:"predict-every"`
	PredictWindow    int     `name:"predict-window" default:"4" help:"Steps of received rows that a recurrent network stores and trains on (τ of SAT)." range:"2..64" part:"predict" toml:"predict-window"`
	PredictLR        float64 `name:"predict-lr" default:"0.01" help:"Learning rate of a recurrent network (Adam, η₂ of SAT)." range:"0.." part:"predict" toml:"predict-lr"`
	PredictInput     string  `name:"predict-input" default:"fresh" enum:"fresh,past" help:"Input of a recurrent network: fresh or past. past: rows of earlier epochs, as in SAT; fresh: the rank's own rows of the current epoch, too." part:"predict" toml:"predict-input"`
	PredictHold      bool    `name:"predict-hold" help:"Use the predictions that a recurrent network made after its last training until the next one, as in SAT." part:"predict" toml:"predict-hold"`
	RefreshRows      string  `name:"refresh-rows" default:"" enum:",dropped,whole" help:"Sent rows of hidden layers: dropped or whole. dropped: after dropout; whole: before dropout, and readers apply the mask of the current epoch (${whole_networks=}). Empty: whole with --predict if the network allows it, else dropped." part:"refresh" toml:"refresh-rows"`
	MeasureStaleness int     `name:"measure-staleness" default:"0" help:"Epochs between two measurements of staleness; 0: never. Measures age and error of ghost rows, and the gradient error, in one extra forward and backward pass; with --batch history:N or variates:N,D of the used rows of the history, in one extra forward pass for each step. Training is unchanged." range:"0.." toml:"measure-staleness"`
}

// ComputeOptions describe where and in which number format a rank computes.
type ComputeOptions struct {
	Tensor       string `default:"cpu" enum:"cpu,cuda,lambda" usual:"" help:"Where tensor work runs: cpu, cuda or lambda. cpu: on the ranks; cuda: on GPUs, with graph work unless --graph cpu; lambda: in invocations of a function (--lambda)." toml:"tensor"`
	GraphWork    string `name:"graph" default:"" enum:",cpu,cuda" help:"Where graph work runs: cpu or cuda. cuda needs --tensor cuda. Empty: on GPUs with --tensor cuda, else on the ranks." toml:"graph"`
	CUDABLAS     string `name:"cuda-blas" default:"auto" enum:"auto,cublas,own" help:"Float32 matrix products on GPUs: auto, cublas or own. auto: cuBLAS if this host has it, else siafu's own kernels." part:"tensor,blas" toml:"cuda-blas"`
	Kernel       string `default:"auto" enum:"auto,avx512,avx2,openblas,go" help:"Compute kernels: auto, avx512, avx2, openblas or go. auto: the best ones that the processors of all ranks have. All but openblas give the same bits; openblas needs a build with that tag." toml:"kernel"`
	SettledCodec string `kong:"-" toml:"-"` // of --codec auto, in a resumed run
	CommonKernel string `kong:"-" toml:"-"` // for --kernel auto, after the ranks have agreed
	Precision    string `default:"float32" enum:"float32,mixed" usual:"" help:"Number format: float32 or mixed. mixed: gather=bf16,features=bf16,products=bf16 (products on CPUs only), faster where memory bandwidth or products limit an epoch; sums and weights stay float32." toml:"precision"`
	Gather       string `default:"" enum:",float32,bf16" help:"Format of gathered rows: float32 or bf16. bf16: rounded first, faster where memory bandwidth limits the gather; sums stay float32. Empty: by --precision." part:"precision" toml:"gather"`
	Features     string `default:"" enum:",float32,bf16" help:"Storage format of --cache-input: float32 or bf16. bf16 halves the memory. Empty: by --precision." part:"precision" toml:"features"`
	Products     string `default:"" enum:",float32,bf16" help:"Operands of the dense products of layers: float32 or bf16. bf16: rounded first, faster on processors with AVX512-BF16, with the same bits on others; sums stay float32. Only with --tensor cpu. Empty: by --precision." identity:"rounded" part:"precision" toml:"products"`
	Order        string `default:"auto" enum:"auto,gather-first,apply-first" help:"Order of products: auto, gather-first or apply-first. gather-first: (ÂH)W; apply-first: Â(HW); auto: the cheaper one by shape." toml:"order"`
	CacheInput   string `default:"auto" enum:"auto,on,off" help:"Compute the input layer's ÂX once and cache it: auto, on or off. sgc: Â^K X, K = --layers; sign: each power up to --model steps=N. auto: if it pays and fits in memory." toml:"cache-input"`
	Recompute    bool   `help:"Recompute activations in the backward pass (not async). Saves memory; forward computation at most doubles, gathers and traffic are unchanged. siafu plan --recompute estimates the memory." toml:"recompute"`
	Memory       string `default:"" help:"Memory limit of a rank, such as 8GB, 380M or 2GiB. Ranks then store most values only for the intervals that run. A run that needs more is refused; scratch=DIR makes it need less. Empty: this host's available memory divided by the ranks on it." toml:"memory"`
	Edges        string `default:"auto" enum:"auto,plain,coded" help:"Storage of the columns of edges that gathers read: auto, plain or coded. coded: about 5 to 16 bits an edge instead of 32, which gathers decode; the results are the same bits. auto: coded if ranks fit in memory only then. See docs/training.md." part:"memory" toml:"edges"`
	Scratch      string `default:"" placeholder:"DIR" help:"Folder for values that do not fit in --memory, in an unnamed file that ends with the run. Only values that are read in order move there: the results are the same bits. See docs/training.md." part:"memory" toml:"scratch"`
	Slices       int    `default:"0" help:"Gather columns of rows in N slices, so that one slice of the rows is in memory (scratch=DIR, one graph rank). Each slice reads the edges again; the results are the same bits. 0: as few as --memory requires." range:"0..64" placeholder:"N" part:"memory" toml:"slices"`
}

// FunctionOptions describe functions that do tensor tasks, with --tensor lambda.
type FunctionOptions struct {
	Bridges        int    `default:"0" help:"Bridge ranks, which invoke functions. They follow the servers in rank order. 0: every graph rank invokes functions directly." range:"0.." part:"lambda" toml:"bridges"`
	BridgeAddress  string `name:"bridge-address" default:"" help:"Address for invoked functions: LISTEN[,ADVERTISED], each host:port. Without a host: all addresses, and the machine's own is advertised; port 0: a free port. Required with --lambda aws; empty with local: 127.0.0.1:0." part:"lambda,address" toml:"bridge-address"`
	Lambda         string `default:"" enum:",local,aws" help:"Provider of functions for --tensor lambda: local or aws. local: processes on this machine behind an implementation of AWS Lambda; aws: AWS Lambda, which costs money." toml:"lambda"`
	LambdaFunction string `name:"lambda-function" default:"" help:"Function: name or ARN with --lambda aws, executable with local. Empty: siafu; or the executable that was built or installed with siafu." part:"lambda" toml:"lambda-function"`
	LambdaMemory   int    `name:"lambda-memory" default:"192" help:"Memory of an invocation in MB, 128 to 10240. AWS charges for it, and assigns processors in proportion: one at 1,769 MB." part:"lambda" toml:"lambda-memory"`
	LambdaArch     string `name:"lambda-arch" default:"" enum:",x86_64,arm64" help:"Architecture of the AWS function, and its price: x86_64 or arm64. Empty: architecture of this machine." part:"lambda" toml:"lambda-arch"`
	LambdaAtOnce   int    `name:"lambda-at-once" default:"0" help:"Concurrency of a graph rank's invocations. 0: follows the queue of graph tasks, from one for each interval, at most 100; with --lambda local at most two for each worker." range:"0.." part:"lambda" toml:"lambda-at-once"`
	LambdaLimits   string `name:"lambda-limits" default:"none" enum:"none,memory,aws" help:"Limits of local function sandboxes: none, memory or aws. memory: memory=MB; aws: also processor share, bandwidth, cold starts and rate of new sandboxes, as AWS has them." part:"lambda" toml:"lambda-limits"`
	LambdaFaults   string `name:"lambda-faults" default:"" help:"Random faults of local functions, as fractions of invocations. Example: seed=1,crash=0.1,late=0.05,delay=1s,lose=0.05,throttle=0.1,duplicate=0.05,corrupt=0.05,straggle=0.05,start=0.05." part:"lambda" toml:"lambda-faults"`
	LambdaCodec    string `name:"lambda-codec" default:"float32" values:"taskcodecs" help:"Codec of values and dense features between ranks and functions: float32, or ${taskcodecs=}. Weights and their gradients stay float32." part:"lambda" toml:"lambda-codec"`
	LambdaWithout  string `name:"lambda-without" default:"" help:"Task optimisations to disable for measurements, separated by commas. fusion: merged stages without a gather between them; rematerialisation: of values that need not be sent; streaming: in halves of the rows." part:"lambda" toml:"lambda-without"`
}

// ModelOptions describe the network and its initial weights.
type ModelOptions struct {
	Model            string  `default:"gcn" enum:"${all_networks}" usual:"Network: ${all_networks}" help:"Network. Values: ${all_networks=}; siafu help networks describes them." identity:"always" toml:"model"`
	LayerKinds       string  `name:"layer-kinds" default:"" placeholder:"K1,K2,…" help:"Networks whose layers this one has, repeated: gcn,sage with --layers 4 is gcn, sage, gcn, sage. The first one is --model, which must not be mlp. Of ${mixing_networks=}. Empty: all of --model." identity:"mixed" toml:"layer-kinds"`
	Layers           int     `default:"2" usual:"" help:"Number of layers." range:"1..65000" identity:"always" toml:"layers"`
	Hidden           int     `default:"16" usual:"" help:"Width of the hidden layers." range:"1.." identity:"always" toml:"hidden"`
	Heads            int     `default:"1" help:"Attention heads of hidden layers, each --hidden wide (${attention_networks=})." range:"1.." identity:"attention" toml:"heads"`
	OutputHeads      int     `name:"output-heads" default:"1" help:"Attention heads of the last layer, averaged (${attention_networks=})." range:"1.." identity:"attention" part:"heads,output" toml:"output-heads"`
	Activation       string  `default:"auto" enum:"auto,relu,elu,gelu,leaky,prelu" help:"Activation of hidden layers: auto, relu, elu, gelu, leaky or prelu. auto: elu with ${elu_networks=}, else relu. Not with ${fixed_networks=}." identity:"design" toml:"activation"`
	Norm             string  `default:"off" enum:"off,layer,batch,pair,l2,ball" help:"Normalisation before activations: off, layer, batch, pair, l2, ball. batch and pair need exact synchronous training. Not with ${fixed_networks=}; l2 and ball not with ${attention_networks=}. See docs/training.md." identity:"norm" toml:"norm"`
	Residual         string  `default:"none" enum:"none,add,initial" help:"Residual connections of hidden layers: none, add or initial. add: the previous layer's output; initial: a fraction --model alpha=A of the first layer's output. Not with ${fixed_networks=}." identity:"design" toml:"residual"`
	Jumping          string  `default:"off" enum:"off,cat,max,last" help:"Jumping knowledge: off, cat, max or last. All --layers layers are hidden; a last product takes their outputs: concatenated, by maximum, or only the last. Not with ${fixed_networks=}." identity:"jumping" toml:"jumping"`
	Dropout          float64 `default:"0.5" usual:"" help:"Dropout probability of a layer's inputs in training." range:"0..<1" identity:"always" toml:"dropout"`
	InputDropout     float64 `default:"-1" help:"Dropout probability of the features, the first layer's input. -1: as --dropout, but 0 if --batch history or variates caches the input. With 0, the product of graph and features is computed only once." range:"-1|0..<1" identity:"always" toml:"input-dropout"`
	AttentionDropout float64 `default:"-1" help:"Dropout probability of edges in an attention head (${attention_networks=}). Applies in training only. -1: as --dropout." range:"-1|0..<1" identity:"attention" part:"dropout,attention" toml:"attention-dropout"`
	InputScale       float64 `name:"input-scale" default:"1" help:"Virtual scale factor of the features, if they are far from 1. First-layer weights start larger, learn faster and are penalised less, each by this factor. Files are unchanged." range:">0.." identity:"scaled" toml:"input-scale"`
	PoolHidden       int     `name:"pool-hidden" default:"0" help:"Width of the perceptron before the maximum (${pool_hidden_networks=}). 0: width of the layer's input, as in PyTorch Geometric and DGL." range:"0.." identity:"pool" part:"model" toml:"pool-hidden"`
	Alpha            float64 `default:"0.1" help:"Fraction of the first layer's rows in each layer or step. Used by ${alpha_networks=} and --residual initial." range:">0..1" identity:"design" part:"model" toml:"alpha"`
	Bases            int     `default:"0" help:"Bases of the matrices of relations, which are then weighted sums of N matrices (${bases_networks=}). 0: independent matrices." range:"0..65000" identity:"relations" part:"model" toml:"bases"`
	Blocks           int     `default:"0" help:"Blocks on the diagonal of the matrices of relations, which have no other elements (${blocks_networks=}); they divide the widths. 0: full matrices." range:"0..65000" identity:"relations" part:"model" toml:"blocks"`
	Softmax          string  `default:"all" enum:"all,relation" help:"Edges of a softmax (${softmax_networks=}): all or relation. all: all edges into a vertex; relation: those of one relation, whose weighted means are added." identity:"related" part:"model" toml:"softmax"`
	EdgeResidual     float64 `name:"edge-residual" default:"0" help:"Fraction of an edge's attention that is its attention in the layer before (${edge_residual_networks=}): the residual connection of edges. It applies between hidden layers." range:"0..<1" identity:"related" part:"model" toml:"edge-residual"`
	Project          string  `default:"auto" enum:"auto,on,off" help:"First multiply the features by a matrix with --hidden columns, in addition to --layers: auto, on or off. Kinds of vertices have their own rows of it. auto: on with networks of relations. Not with ${fixed_networks=}." identity:"projected" part:"model" toml:"project"`
	Theta            float64 `default:"0.5" help:"Depth decay (${theta_networks=}): layer L weighs W by ln(theta/L + 1)." range:"0.." identity:"design" part:"model" toml:"theta"`
	Hops             int     `default:"10" help:"Propagation steps after the layers (${hops_networks=})." range:"1..65000" identity:"design" part:"model" toml:"hops"`
	Powers           int     `default:"3" name:"steps" help:"Powers of the adjacency matrix in addition to the features (${steps_networks=})." range:"1..65000" part:"model" toml:"steps"`
	Embedding        int     `default:"16" help:"Width of the last layer, the vertex embeddings (--task links)." range:"1.." toml:"embedding"`
	LinkScore        string  `name:"link-score" default:"dot" enum:"dot,mlp,distmult,complex" help:"Score of an edge from two embeddings: dot, mlp, distmult or complex (--task links). dot: dot product; mlp: perceptron on the element-wise product, as LinkPredictor of OGB's examples; distmult and complex: with trained weights for each relation (relational graphs)." identity:"score" toml:"link-score"`
	LinkLayers       int     `name:"link-layers" default:"3" help:"Layers of the perceptron." range:"1..64" identity:"scores" part:"link-score,layers" toml:"link-layers"`
	LinkHidden       int     `name:"link-hidden" default:"64" help:"Width of the hidden layers of the perceptron." range:"1..65536" identity:"scores" part:"link-score,hidden" toml:"link-hidden"`
	LinkDropout      float64 `name:"link-dropout" default:"-1" help:"Dropout probability in the perceptron. Applies to outputs of its hidden layers in training. -1: as --dropout." range:"-1|0..<1" identity:"scores" part:"link-score,dropout" toml:"link-dropout"`
	LinkNegatives    int     `name:"link-negatives" default:"1" help:"Corrupted triples for each edge of a relational graph in an epoch. A random vertex replaces its source or destination." range:"1..65536" identity:"triples" part:"link-score,negatives" toml:"link-negatives"`
	Init             string  `default:"" placeholder:"FILE" help:"File of the initial weights: safetensors or a PyTorch state dict. Names are those of the network that siafu export writes, or of PyTorch Geometric's layers." toml:"init"`
	Initializer      string  `default:"auto" enum:"auto,xavier,he,torch,small-logits" help:"Random initial weights: auto, xavier, he, torch or small-logits. torch: as PyTorch's Linear; small-logits: torch with logits near zero; auto: the best measured one for the network." identity:"random" toml:"initializer"`
}

// TrainingOptions describe the task, the optimiser and when training stops.
type TrainingOptions struct {
	Recipe           string   `default:"" enum:",${recipes}" placeholder:"NAME" usual:"" help:"Settings of a published run. siafu help recipes lists them with their results. Explicit flags take precedence." toml:"recipe"`
	Defaults         string   `default:"auto" enum:"auto,fixed" help:"Defaults of other flags: auto or fixed. auto: some follow the graph's size, split and feature scale; the log and summary.json list them. fixed: as in docs/commands.md." toml:"defaults"`
	Repeat           string   `name:"repeat" default:"" placeholder:"RUN" help:"Run folder whose measured decisions this run repeats, for the same bits: those of --codec auto and --refresh auto in each epoch, of --recompute-ghosts auto and of --cache-input auto." toml:"repeat"`
	Recorded         Recorded `kong:"-" toml:"-"` // by the run of Repeat
	Chosen           []Choice `kong:"-" toml:"-"` // Suit
	Task             string   `default:"" enum:",multiclass,multilabel,regression,links" usual:"" help:"Task: multiclass, multilabel, regression or links. Losses: cross entropy, sigmoid cross entropy, squared error, cross entropy of vertex pairs (siafu holdout). Empty: the task of the dataset." identity:"loss" toml:"task"`
	Batch            string   `name:"batch" default:"full" help:"Vertices of a weight update: full or a mini-batch method. history:N (GNNAutoScale), variates:N,D (VR-GCN), neighbor:D1,D2[,SIZE] (GraphSAGE), cluster:N[,Q] (Cluster-GCN), saint:ROOTS[,LENGTH] (GraphSAINT), approximate:F (a fraction of other ranks' vertices, sampled once); see docs/minibatches.md." identity:"batches" toml:"batch"`
	DrawnSteps       int      `kong:"-" toml:"-"` // Divide
	Pipeline         string   `name:"pipeline" default:"" placeholder:"P[,D]" help:"Pipelines of layers (--batch cluster:N,Q): each of D pipelines has P graph ranks with consecutive layers, and one of D partitions of the graph. D is 1 if it is omitted. See docs/pipelines.md." toml:"pipeline"`
	Microbatches     int      `name:"microbatches" default:"1" help:"Microbatches of an update in each pipeline. Each is a mini-batch of its own; their gradients are summed." range:"1.." identity:"pipelines" part:"pipeline" toml:"microbatches"`
	Schedule         string   `name:"schedule" default:"1f1b" enum:"1f1b,gpipe" help:"Order of the microbatches on a stage: 1f1b or gpipe. 1f1b: forward and backward passes alternate; gpipe: first all forward passes. The bits are the same; 1f1b stores fewer activations." part:"pipeline" toml:"schedule"`
	Balance          string   `name:"balance" default:"arithmetic" enum:"arithmetic,memory" help:"Layers of each stage: arithmetic or memory. arithmetic: equal work; memory: equal activations, with fewer layers on earlier stages, which store more microbatches. The bits are the same." part:"pipeline" toml:"balance"`
	Redundancy       string   `name:"redundancy" default:"off" enum:"off,lflb,eflb,efeb" help:"Redundant computation of the next stage's layers: off, lflb, eflb or efeb. lflb: only after a loss; eflb: forward passes, as in Bamboo; efeb: forward and backward passes." part:"pipeline" toml:"redundancy"`
	HistoryFormat    string   `name:"history-format" default:"float32" enum:"float32,bf16,int8" help:"Storage and transfer format of history rows: float32, bf16 or int8. int8 has a scale for each row." identity:"batches" part:"batch,format" toml:"history-format"`
	Epochs           int      `default:"200" usual:"" help:"Number of epochs." range:"0..2147483647" toml:"epochs"`
	LR               float64  `name:"lr" default:"0.01" usual:"" help:"Learning rate." range:">0.." identity:"always" toml:"lr"`
	Optimizer        string   `default:"adam" enum:"sgd,adam,adamw" help:"Optimiser: sgd, adam or adamw." identity:"always" toml:"optimizer"`
	Momentum         float64  `default:"0.9" help:"Momentum of sgd." range:"0..<1" identity:"momentum" part:"optimizer" toml:"momentum"`
	WeightDecay      float64  `default:"5e-4" usual:"L2 penalty on weight matrices" help:"L2 penalty on weight matrices; with adamw decoupled decay." range:"0.." identity:"always" toml:"weight-decay"`
	InnerDecay       float64  `name:"inner-decay" default:"0.01" help:"L2 penalty on the inner layers' matrices (${inner_decay_networks=}). It replaces the penalty between the first and the last layer." range:"0.." identity:"inner" part:"weight-decay,inner" toml:"inner-decay"`
	WeightDecayOn    string   `default:"first" enum:"first,all" help:"Layers with the L2 penalty: first (Kipf & Welling 2017) or all." identity:"always" part:"weight-decay" toml:"weight-decay-on"`
	Seed             uint64   `default:"1" usual:"" help:"Seed of initial weights and dropout." identity:"always" toml:"seed"`
	LabelSmoothing   float64  `name:"label-smoothing" default:"0" help:"Label smoothing: fraction of the target spread over all classes." range:"0..<1" identity:"loss" toml:"label-smoothing"`
	ClassWeights     string   `name:"class-weights" default:"" placeholder:"balanced|root|off|NAME=W,…|W,W,…" help:"Class weights in the loss: balanced, root, by name, a list or off. root: square root of balanced; fraud=10,legit=1: by name, others weigh 1; a list has a number for each class. Empty: off." identity:"loss" toml:"class-weights"`
	EvalEvery        int      `default:"1" usual:"" help:"Epochs between two evaluations; 0: only at the end." range:"0.." toml:"eval-every"`
	Patience         int      `default:"0" usual:"Epochs without improvement before a stop; 0: never" help:"Epochs without improvement of --monitor before a stop; 0: never." range:"0.." toml:"patience"`
	Monitor          string   `aliases:"patience-on" default:"accuracy" enum:"accuracy,loss,both,penalised,balanced_accuracy,micro_f1,macro_f1,weighted_f1,roc_auc,mse,mae,r2,average_precision,mrr,hits@1,hits@3,hits@10,hits@20,hits@50,hits@100,f1_micro,f1_macro,f1_weighted,auc" placeholder:"METRIC" usual:"Validation value that selects the best weights" help:"Validation value that selects the best weights, also for --patience. accuracy (or the task's score), loss, both, penalised, or a metric of summary.json, such as macro_f1 or roc_auc. --patience-on is an alias." toml:"monitor"`
	TargetAcc        float64  `default:"0" help:"Validation accuracy at which training stops, a fraction; 0: never." range:"0..1" toml:"target-acc"`
	LocalEpochs      int      `name:"local-epochs" default:"0" help:"Epochs of local training between two averagings; 0: none. Each rank updates its own weights; then weights and optimiser state are averaged. 0: gradients are summed in every epoch, and weights are equal." range:"0.." toml:"local-epochs"`
	ServerCorrection int      `name:"server-correction" default:"0" help:"Joint steps after each averaging (LLCG); 0: none. Each step uses the exact gradient of a mini-batch of training vertices with all neighbours." range:"0.." part:"local-epochs,correction" toml:"server-correction"`
	CorrectionBatch  int      `name:"correction-batch" default:"0" help:"Mean number of training vertices in a joint step. 0: all." range:"0.." part:"local-epochs" toml:"correction-batch"`
}

// CheckpointOptions describe when a run saves its state and what it resumes from.
type CheckpointOptions struct {
	CheckpointEvery string `default:"10m" usual:"Interval: epochs (20e), time (10m, 90s) or off" help:"Interval between checkpoints: epochs (20e), time (10m, 90s) or off. The run also saves at its end." toml:"checkpoint-every"`
	Keep            int    `default:"3" help:"Number of checkpoints to retain; 0: all." range:"0.." toml:"keep"`
	Resume          string `default:"" placeholder:"auto|PATH" usual:"" help:"Checkpoint to resume from: auto or PATH. auto: the newest in --out, if any; PATH: a checkpoint or a run folder." toml:"resume"`
	Grace           string `default:"0s" help:"Time from SIGTERM to SIGKILL. siafu warns if an epoch takes longer. 0s: as the batch system reports." toml:"grace"`
}

// OutputOptions describe files and messages of a run, and its price.
type OutputOptions struct {
	Out         string `default:"" placeholder:"DIR" usual:"" help:"Run folder. Empty: runs/NAME-ID." toml:"out"`
	Force       bool   `usual:"" help:"Replace an existing run folder." toml:"force"`
	ForceMemory bool   `name:"force-memory" help:"Train even if the estimated memory exceeds the available memory." toml:"force-memory"`
	Quiet       bool   `help:"Print only two lines: scores, and files." toml:"quiet"`
	LogFormat   string `name:"log-format" default:"auto" enum:"auto,text,fields" help:"Lines on the terminal: auto, text or fields. text: aligned columns; fields: key=value, as in log.txt. auto: text on a terminal, else fields." toml:"log-format"`
	Trace       string `default:"" placeholder:"FILE" help:"File for a timeline of the tasks of all ranks. For ui.perfetto.dev, chrome://tracing and siafu bench breakdown." toml:"trace"`
	TensorBoard bool   `name:"tensorboard" help:"Write each epoch's numbers as a TensorBoard event file. File: events.out.tfevents.siafu in the run folder." toml:"tensorboard"`
	Instance    string `default:"" placeholder:"TYPE|USD" help:"Price of each host: EC2 instance type or dollars an hour. The run then reports its cost and value. Empty: no costs." toml:"instance"`
	Budget      string `default:"" placeholder:"USD" help:"Maximum cost of a run in dollars; it stops before (exit code 75). Counts hosts (--instance), invocations, and earlier parts of a resumed run; saves a checkpoint. Empty: no limit." toml:"budget"`
}

// Recorded are the decisions of a run in its epochs, from the first one on; empty without an automatic choice.
type Recorded struct{ Codecs, Policies []string }

// Options yields each option with its tags and its value, in the order of the groups.
func (c *Config) Options() iter.Seq2[reflect.StructField, reflect.Value] {
	return func(yield func(reflect.StructField, reflect.Value) bool) {
		all := reflect.ValueOf(c).Elem()
		for _, f := range optionFields() {
			if !yield(f, all.FieldByIndex(f.Index)) {
				return
			}
		}
	}
}

// optionFields returns the fields of Config that are options, which reflection finds slowly.
var optionFields = sync.OnceValue(func() []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(reflect.TypeFor[Config]()), func(f reflect.StructField) bool {
		return f.Anonymous
	})
})
