package config

import (
	"cmp"
	"slices"
	"strings"

	"siafu/graph"
	"siafu/halo/codec"
	"siafu/halo/predict"
	"siafu/internal/fault"
	"siafu/kernels/model"
	"siafu/ranks/stopping"
	"siafu/ranks/tune"
)

// situation has the options of a run and, when they are known, its dataset, network and task.
type situation struct {
	*Config
	meta *graph.Meta // nil: not read
	net  model.Spec
	task string // "": unknown
}

// kind returns the description of the network.
func (s situation) kind() *model.Kind {
	if s.net.Kind != "" { // in a prediction the options name no network
		return model.KindOf(s.net.Kind)
	}
	return s.Config.kind()
}

// fact is a property of a run that excludes others.
type fact struct {
	name  string // for documents
	flags string // flags to show in messages, separated by spaces; empty: messages show the name
	holds func(s situation) bool
}

// conflict is a pair of facts that siafu does not support together.
type conflict struct {
	a, b   fact
	remedy string
}

// Facts about the schedule.
var (
	asynchronous = fact{"--mode async or free", "mode", func(s situation) bool { return s.Asynchronous() }}
	bounded      = fact{"--mode async", "mode", func(s situation) bool { return s.Mode == "async" }}
	fully        = fact{"--mode free", "mode", func(s situation) bool { return s.Mode == Free }}
	notBounded   = fact{"a mode other than async", "mode", func(s situation) bool { return s.Mode != "async" }}
	notFree      = fact{"a mode other than free", "mode", func(s situation) bool { return s.Mode != Free }}
	staleness    = fact{"--mode staleness=S or switch-to-sync=X", "staleness switch-to-sync",
		func(s situation) bool { return s.Staleness != 0 || s.SwitchToSync != 0 }}
	lingers      = fact{"--mode linger=X other than 1", "linger", func(s situation) bool { return s.Linger != 1 }}
	delayBound   = fact{"--mode delay-bound=N", "delay-bound", func(s situation) bool { return s.DelayBound != 0 }}
	servers      = fact{"--servers 2 or more", "servers", func(s situation) bool { return s.Servers > 1 }}
	localEpochs  = fact{"--local-epochs", "local-epochs", func(s situation) bool { return s.LocalEpochs > 0 }}
	noRounds     = fact{"no --local-epochs", "local-epochs", func(s situation) bool { return s.LocalEpochs == 0 }}
	corrects     = fact{"--local-epochs correction=N", "server-correction", func(s situation) bool { return s.ServerCorrection > 0 }}
	noCorrection = fact{"no --local-epochs correction=N", "server-correction", func(s situation) bool { return s.ServerCorrection == 0 }}
	correctBatch = fact{"--local-epochs correction-batch=N", "correction-batch", func(s situation) bool { return s.CorrectionBatch > 0 }}
)

// Facts about lost ranks.
var (
	survives    = fact{"--survive", "survive", func(s situation) bool { return s.Survive }}
	cannotSpare = fact{"--survive spares=N,least=N,notice=COMMAND,zones=FILE or listen=CIDR",
		"spares least-ranks notice zones listen", func(s situation) bool {
			return s.Spares > 0 || s.LeastRanks > 1 || s.Notice != "" || s.Zones != "" || s.Listen != ""
		}}
	doesNot = fact{"no --survive", "survive", func(s situation) bool { return !s.Survive }}
	traces  = fact{"--trace", "trace", func(s situation) bool { return s.Trace != "" }}
)

// Facts about pipelines of layers.
var (
	pipelines  = fact{"--pipeline", "pipeline", func(s situation) bool { return s.Pipeline != "" }}
	noPipeline = fact{"no --pipeline", "pipeline", func(s situation) bool { return s.Pipeline == "" }}
	partitions = fact{"--parts", "parts", func(s situation) bool { return s.Parts > 0 }}
	pipelining = fact{"--pipeline microbatches=N,schedule=S,balance=memory or redundancy=R",
		"microbatches schedule balance redundancy", func(s situation) bool {
			return s.Microbatches > 1 || cmp.Or(s.Schedule, "1f1b") != "1f1b" ||
				cmp.Or(s.Redundancy, "off") != "off" || s.Balance == ByMemory
		}}
)

// Facts about the exchange of ghost rows.
var (
	inexact      = fact{"ghost rows or gradients of other epochs", "refresh ghost-gradients", func(s situation) bool { return !s.Exact() }}
	exact        = fact{"exact training", "refresh ghost-gradients", func(s situation) bool { return s.Exact() }}
	samplesRows  = fact{"a --refresh that samples vertices", "refresh", func(s situation) bool { return s.Ghosts().Samples() }}
	alternates   = fact{"--refresh auto", "refresh", func(s situation) bool { return s.Ghosts().Alternates() }}
	alone        = fact{"a --refresh without ghost rows", "refresh", func(s situation) bool { return s.Alone() }}
	cannotPush   = fact{"a --refresh that ranks cannot push by", "refresh", func(s situation) bool { return !s.Ghosts().Pushes() }}
	noGradients  = fact{"--refresh gradients=no", "ghost-gradients", func(s situation) bool { return !s.Returns() }}
	preAggregate = fact{"--pre-aggregate on", "pre-aggregate", func(s situation) bool { return s.PreAggregate == "on" }}
	computes     = fact{"--recompute-ghosts all or layers:N", "recompute-ghosts",
		func(s situation) bool { return s.RecomputeGhosts != "auto" && s.RecomputeGhosts != "none" }}
	computesPart = fact{"--recompute-ghosts layers:N with a fraction", "recompute-ghosts", func(s situation) bool {
		_, share, _ := model.ParseLocal(s.RecomputeGhosts)
		return share > 0
	}}
	receives = fact{"asynchronous ranks, mini-batches, or a --refresh without all ghosts in each epoch", "mode refresh batch",
		func(s situation) bool { return s.recomputeGhosts() == "none" }}
	predicts     = fact{"--predict", "predict", func(s situation) bool { return s.Predicts() }}
	predictsNone = fact{"--predict off", "predict", func(s situation) bool { return !s.Predicts() }}
	predictRows  = fact{"--predict rows=N", "predict-rows", func(s situation) bool { return s.PredictRows != 0 }}
	compresses   = fact{"--predict history=FORMAT other than none", "predict-history",
		func(s situation) bool { return cmp.Or(s.PredictHistory, predict.Uncompressed) != predict.Uncompressed }}
	notStale = fact{"a --refresh without stale rows, or with sampled ones", "refresh", func(s situation) bool {
		p := s.Ghosts()
		return s.Batches() == 0 && (p.Exact() || p.NoGhosts() || p.Alternates() || p.Samples())
	}}
	averages   = fact{"--predict momentum:B", "predict", func(s situation) bool { return s.Averages() }}
	notHistory = fact{"--batch other than history:N", "batch", func(s situation) bool { return s.Batching().Kind != History }}
	averagesNo = fact{"a --model other than gcn, --residual or --layer-kinds", "model residual layer-kinds", func(s situation) bool {
		return !s.kind().Momentum || s.Residual != "none" || s.LayerKinds != ""
	}}
	whole        = fact{"--refresh rows=whole", "refresh-rows", func(s situation) bool { return s.RefreshRows == "whole" }}
	takesNoWhole = fact{"a network other than gcn, gin, sage or sage-max of two layers or more with dropout", "model layers dropout",
		func(s situation) bool { return !s.Network(1, 1).TakesWholeRows() }}
	measures     = fact{"--measure-staleness", "measure-staleness", func(s situation) bool { return s.MeasureStaleness > 0 }}
	unmeasurable = fact{"ghosts that are never stale, or tensor tasks in functions", "refresh tensor", func(s situation) bool {
		return s.Exact() && s.Batches() == 0 || s.Ghosts().Alternates() || s.Tensor == TensorLambda
	}}
	measuresWithin = fact{"--measure-staleness within a round", "measure-staleness", func(s situation) bool {
		return s.LocalEpochs > 0 && s.MeasureStaleness%s.LocalEpochs > 0
	}}
	autoCodec = fact{"--codec auto", "codec", func(s situation) bool {
		list, _ := tune.Candidates(s.Codec)
		return list != nil
	}}
	feedback = fact{"a --codec with +ef", "codec", func(s situation) bool {
		c, _ := codec.ByName(s.Codec)
		_, is := c.(codec.Corrected)
		return is
	}}
)

// Facts about recurrent predictors.
var (
	trainsCells       = fact{"--predict lstm-gcn, gru-gcn or lstm-gat", "predict", func(s situation) bool { return s.TrainsPredictor() }}
	predictsOtherwise = fact{"--predict other than lstm-gcn, gru-gcn and lstm-gat", "predict",
		func(s situation) bool { return !s.TrainsPredictor() }}
	predictorOptions = fact{"--predict every=N,window=N,lr=X,input=past or hold",
		"predict-every predict-window predict-lr predict-input predict-hold", func(s situation) bool {
			return s.PredictEvery != 0 && s.PredictEvery != 10 || s.PredictWindow != 0 && s.PredictWindow != 4 ||
				s.PredictLR != 0 && s.PredictLR != 0.01 || s.PredictInput == "past" || s.PredictHold
		}}
)

// Facts about where and how a rank computes.
var (
	inFunctions = fact{"--tensor lambda", "tensor", func(s situation) bool { return s.Tensor == TensorLambda }}
	onGPUs      = fact{"--tensor cuda with graph work", "tensor graph", func(s situation) bool { return s.GPUsGather() }}
	appliesGPUs = fact{"--tensor cuda --graph cpu", "tensor graph", func(s situation) bool { return s.GPUsApply() }}
	notCPU      = fact{"--tensor cuda or lambda", "tensor", func(s situation) bool { return s.Tensor != "cpu" }}
	notCUDA     = fact{"--tensor other than cuda", "tensor", func(s situation) bool { return s.Tensor != TensorCUDA }}
	graphCUDA   = fact{"--graph cuda", "graph", func(s situation) bool { return s.GraphWork == GraphCUDA }}
	namedBLAS   = fact{"--tensor blas=own or cublas", "cuda-blas",
		func(s situation) bool { return s.CUDABLAS != "" && s.CUDABLAS != "auto" }}
	streams     = fact{"--memory scratch=DIR", "scratch", func(s situation) bool { return s.Scratch != "" }}
	codesEdges  = fact{"--memory edges=coded", "edges", func(s situation) bool { return s.Edges == CodedEdges }}
	recomputes  = fact{"--recompute", "recompute", func(s situation) bool { return s.Recompute }}
	cachesInput = fact{"--cache-input on", "cache-input", func(s situation) bool { return s.CacheInput == "on" }}
	cachesNone  = fact{"--cache-input off", "cache-input", func(s situation) bool { return s.CacheInput == "off" }}
	appliesIn   = fact{"--order apply-first", "order", func(s situation) bool { return s.Order == "apply-first" }}
	openBLAS    = fact{"--kernel openblas", "kernel", func(s situation) bool { return s.Kernel == "openblas" }}
	rounds      = fact{"--precision products=bf16", "products", func(s situation) bool { return s.RoundsProducts() }}
	lambdaArch  = fact{"--lambda arch=ARCH", "lambda-arch", func(s situation) bool { return s.LambdaArch != "" }}
	lambdaLocal = fact{"--lambda local", "lambda", func(s situation) bool { return s.Lambda == LambdaLocal }}
	notLocal    = fact{"--lambda other than local", "lambda", func(s situation) bool { return s.Lambda != LambdaLocal }}
	sandboxed   = fact{"--lambda limits=aws or faults=FAULTS", "lambda-limits lambda-faults", func(s situation) bool {
		return s.LambdaLimits != LimitsNone || s.LambdaFaults != ""
	}}
)

// Facts about the network.
var (
	fixedDesign = fact{"a --model with a fixed design", "model", func(s situation) bool { return s.kind().FixedDesign() }}
	noGathers   = fact{"a --model without the graph", "model", func(s situation) bool { return !s.kind().Propagates() }}
	noSums      = fact{"a --model of attention, maxima or relations", "model", func(s situation) bool { return !s.kind().Adds() }}
	noHistory   = fact{"a --model that does not gather sums of unchanged rows", "model", func(s situation) bool {
		return !s.kind().Adds() || s.kind().Order == "apply-first"
	}}
	mixed      = fact{"--layer-kinds", "layer-kinds", func(s situation) bool { return s.LayerKinds != "" }}
	relational = fact{"a --model of relations", "model", func(s situation) bool { return s.kind().Relational }}
	bases      = fact{"--model bases=N", "bases", func(s situation) bool { return s.Bases > 0 }}
	blocks     = fact{"--model blocks=N", "blocks", func(s situation) bool { return s.Blocks > 0 }}
	projects   = fact{"--model project=on", "project", func(s situation) bool { return s.Project == "on" }}
	maxima     = fact{"a --model of maxima", "model", func(s situation) bool { return s.kind().Maximum }}
	dynamic    = fact{"a --model with scores of both ends of an edge", "model", func(s situation) bool { return s.kind().Dynamic }}
	noRowNorms = fact{"a --model without row norms", "model", func(s situation) bool { return !s.kind().TakesRowNorms() }}
	noVariates = fact{"a network without gathers that control variates estimate", "model layers", func(s situation) bool {
		return !s.kind().Variates || s.gathers() < 2 && s.Network(1, 1).GathersInput()
	}}
	noPool = fact{"a --model without a perceptron before maxima", "model",
		func(s situation) bool { return !s.kind().Takes(model.OptionPoolHidden) }}
	poolWidth  = fact{"--model pool-hidden=N", "pool-hidden", func(s situation) bool { return s.PoolHidden != 0 }}
	residual   = fact{"--residual", "residual", func(s situation) bool { return s.Residual != "none" }}
	activation = fact{"--activation", "activation", func(s situation) bool { return s.Activation != "auto" }}
	jumping    = fact{"--jumping", "jumping", func(s situation) bool { return s.Jumping != "off" }}
	norm       = fact{"--norm", "norm", func(s situation) bool { return s.Norm != "off" }}
	rowNorm    = fact{"--norm l2 or ball", "norm", func(s situation) bool { return model.DividesRows(s.Norm) }}
	hiddenNorm = fact{"--norm layer, batch or pair", "norm",
		func(s situation) bool { return s.Norm != "off" && !model.DividesRows(s.Norm) }}
	columnNorm   = fact{"--norm batch or pair", "norm", func(s situation) bool { return s.sums() }}
	oneLayer     = fact{"one layer", "layers", func(s situation) bool { return s.Layers < 2 && s.Jumping == "off" }}
	twoLayers    = fact{"fewer than three layers", "layers", func(s situation) bool { return s.Layers < 3 }}
	powers       = fact{"a --model of cached powers", "model", func(s situation) bool { return s.kind().Powers != nil }}
	inputDropout = fact{"--input-dropout before cached ÂX", "input-dropout",
		func(s situation) bool { return s.InputDropout > 0 && s.cachesInput(s.Network(1, 1)) }}
	someRounds = fact{"inexact training or --local-epochs", "refresh local-epochs",
		func(s situation) bool { return !s.Exact() || s.LocalEpochs > 0 }}
)

// Facts about mini-batches, the task and its metrics.
var (
	batches   = fact{"mini-batches", "batch", func(s situation) bool { return s.Batches() > 0 }}
	histories = fact{"--batch history or variates", "batch", func(s situation) bool { return s.Batches() > 0 && !s.Batching().Draws() }}
	variates  = fact{"--batch variates", "batch", func(s situation) bool { return s.Batching().Samples > 0 }}
	oneKind   = fact{"--batch neighbor or variates", "batch",
		func(s situation) bool { return s.Batching().Kind == Neighbour || s.Batching().Samples > 0 }}
	sampled = fact{"--batch neighbor, cluster, saint or approximate", "batch", func(s situation) bool { return s.Batching().Draws() }}
	formats = fact{"--batch format=F or --precision features=F other than float32", "history-format features",
		func(s situation) bool { return s.HistoryFormat != "float32" || s.Features == "bf16" }}
	format = fact{"--batch format=FORMAT other than float32", "history-format",
		func(s situation) bool { return s.HistoryFormat != "float32" }}
	monitors = fact{"a --monitor of logits", "monitor", func(s situation) bool { return stopping.IsMetric(s.Monitor) }}
	links    = fact{"the task links", "", func(s situation) bool { return s.task == graph.Links }}
	smoothed = fact{"--label-smoothing or --class-weights", "label-smoothing class-weights",
		func(s situation) bool { return s.LabelSmoothing > 0 || s.Weighs() }}
	related  = fact{"a relational graph", "", func(s situation) bool { return s.meta != nil && s.meta.Relations != nil }}
	weighted = fact{"edge weights that the network uses", "",
		func(s situation) bool { return s.meta != nil && s.meta.Weighted && s.net.Weighs() }}
)

// Parts of remedies.
const (
	orRowNorm    = ", or use --norm layer, which works per row: column means need all vertices of the epoch, and run where graph work runs"
	namedCodec   = "name the codec: no rank waits for rows, so epoch times do not show the fastest codec"
	batchCodec   = "name one codec, which evaluations use, or leave --codec out"
	pipeBatches  = "choose --mode pipe: ranks must run their batches synchronously"
	wholeGraph   = ": scores of pairs need the embeddings of the whole graph"
	otherMonitor = ": use --monitor accuracy, loss, both or penalised"
	noRelations  = "leave --batch out: batches have edges without relations"
	plainEdges   = "leave --memory edges out: "
	orUnweighted = ", or import the dataset with --drop-weights"
)

// gpuConflicts also apply to predictions.
var gpuConflicts = []conflict{
	{namedBLAS, notCUDA, "set --tensor cuda: this flag applies to products on GPUs"},
	{graphCUDA, notCUDA, "set --tensor cuda: graph work on GPUs needs it"},
}

// linkConflicts need the task of the dataset.
var linkConflicts = []conflict{
	{links, asynchronous, "leave --mode out" + wholeGraph},
	{links, batches, "leave --batch out" + wholeGraph},
	{links, localEpochs, "leave --local-epochs out: the two ends of a pair may be on different ranks"},
	{links, inFunctions, "use --tensor cpu or cuda" + wholeGraph},
	{links, appliesGPUs, "leave --graph out" + wholeGraph},
	{links, smoothed, "leave both out: there are no classes"},
}

// edgeConflicts need the dataset's edges and the network.
var edgeConflicts = []conflict{
	{onGPUs, maxima, "choose --graph cpu: GPUs gather sums and attention, but not maxima"},
	{onGPUs, dynamic, "choose --graph cpu, or --model gat: GPUs have no kernel for scores that depend on both ends of an edge"},
	{weighted, preAggregate, "leave --pre-aggregate out: sums of rows work only for edges without weights" + orUnweighted},
	{related, preAggregate, "leave --pre-aggregate out: sums of rows have no relations"},
	{weighted, onGPUs, "choose --graph cpu: GPUs gather only along edges without weights" + orUnweighted},
}

// conflicts are all pairs of facts that siafu does not support together. The first one that
// holds is reported.
var conflicts = slices.Concat([]conflict{
	{pipelining, noPipeline, "set --pipeline P with P stages, 1 or more"},
	{pipelines, partitions, "leave --parts out: each pipeline has one partition"},
	{survives, asynchronous, "leave --mode out: ranks continue from an epoch that all have ended"},
	{survives, inFunctions, "leave --tensor out: a bridge has tasks of several epochs"},
	{survives, traces, "leave --trace out: a timeline has the tasks of one world"},
	{cannotSpare, doesNot, "set --survive"},
	{recomputes, bounded, "leave --recompute out: asynchronous intervals need their stored activations"},
	{streams, asynchronous, "leave --mode out: only synchronous intervals read their values in order"},
	{streams, batches, "leave --batch out: batches read rows at random"},
	{streams, links, "leave --memory scratch=DIR out: pairs read rows at random"},
	{streams, noSums, "leave --memory scratch=DIR out: attention, maxima and relations read more values at random than sums of rows"},
	{streams, notCPU, "leave --tensor out"},
	{codesEdges, asynchronous, plainEdges + "asynchronous intervals gather single rows"},
	{codesEdges, batches, plainEdges + "batches read the edges of single vertices"},
	{codesEdges, noGathers, plainEdges + "this model does not aggregate"},
	{codesEdges, noSums, plainEdges + "attention, maxima and relations read plain columns"},
	{codesEdges, notCPU, plainEdges + "only ranks on CPUs decode columns"},
	{rounds, notCPU, "leave --precision products=bf16 out: only products on the ranks' processors round their operands"},
	{preAggregate, noGathers, "leave --pre-aggregate out: this model does not aggregate"},
	{preAggregate, noSums, "leave --pre-aggregate out: attention, maxima and relations need the rows of single vertices"},
	{preAggregate, bounded, "leave --pre-aggregate out: each interval sends its own rows, but a sum has rows of several intervals"},
	{relational, asynchronous, "leave --mode out: all intervals gather with the weights of one epoch"},
	{relational, batches, noRelations},
	{relational, notCPU, "leave --tensor out: only ranks on CPUs multiply by the matrices of relations"},

	{bases, blocks, "leave one of them out: matrices are sums of bases, or consist of blocks"},
	{projects, fixedDesign, "leave --model project=on out: this network has its own first product"},
	{residual, fixedDesign, "leave --residual out: the network has its own residual connections, or none between layers"},
	{activation, fixedDesign, "leave --activation out: this network has a fixed activation"},
	{norm, fixedDesign, "leave --norm out: this network has no normalisation between its layers"},
	{jumping, fixedDesign, "leave --jumping out: this network's last product has its own input"},
	{rowNorm, noRowNorms, "choose --norm layer: this normalisation follows sums and maxima of neighbours, not attention"},
	{poolWidth, noPool,
		"leave --model pool-hidden=N out, or choose --model ${pool_hidden_networks}: the network has no perceptron before its maxima"},
	{hiddenNorm, oneLayer, "use 2 layers or more: hidden layers are normalised"},
	{predicts, asynchronous, "leave --mode out: predictions need own rows of the same epochs as the ghost rows"},
	{averages, notHistory, "set --batch history:N: only its batches compute rows of vertices outside"},
	{averages, averagesNo,
		"choose --model gcn without --residual and --layer-kinds: other layers need more of a vertex than its neighbours' rows"},
	{averages, predictRows, "leave --predict rows=N out: an average learns from no rows"},
	{predicts, sampled, "choose --batch history:N or variates:N,D: batches of this kind have no stale rows"},
	{predicts, notStale, "choose --refresh every:N, previous, delay:R, drift:THETA or age:N: only stale rows are predicted"},
	{predicts, preAggregate, "leave --pre-aggregate out: rows of vertices are predicted, not sums"},
	{predicts, onGPUs, "choose --graph cpu: predictions run on the ranks"},
	{whole, takesNoWhole, "leave --refresh rows out: rows of this network are not whole before a dropout"},
	{whole, asynchronous, "leave --mode out: only synchronous ranks apply the dropout of ghosts"},
	{whole, batches, "leave --refresh rows out: rows outside a batch come from the history"},
	{whole, notCPU, "leave --tensor out"},
	{whole, appliesIn, "leave --order out: whole rows meet their weights after the gather"},
	{whole, preAggregate, "leave --pre-aggregate out: each ghost has its own mask, but a sum has several rows"},
	{whole, computes, "leave --recompute-ghosts out: it computes ghost rows with their dropout"},
	{predictRows, predictsNone, "set --predict"},
	{compresses, predictsNone, "set --predict transfer"},
	{compresses, trainsCells, "leave --predict history=FORMAT out: cells read all stored rows in each step"},
	{batches, trainsCells, "choose --predict transfer: a batch is another part of the graph in each step"},
	{compresses, batches, "choose --batch format=FORMAT: batches learn from rows of the history"},
	{predictorOptions, predictsOtherwise, "set --predict lstm-gcn, gru-gcn or lstm-gat, which is trained"},

	{columnNorm, asynchronous, "leave --mode out" + orRowNorm},
	{columnNorm, someRounds, "leave both out" + orRowNorm},
	{columnNorm, inFunctions, "leave --tensor out" + orRowNorm},
	{columnNorm, appliesGPUs, "leave --graph out" + orRowNorm},
	{residual, twoLayers, "use 3 layers or more: residuals connect hidden layers only"},
	{columnNorm, batches, "leave --batch out" + orRowNorm},
	{batches, powers, "leave --batch out: the powers of Â need the whole graph"},

	{monitors, asynchronous, "the scores are computed during training passes" + otherMonitor},
	{monitors, inFunctions, "logits are not on the ranks" + otherMonitor},
	{monitors, appliesGPUs, "logits are not on the ranks" + otherMonitor},

	{measures, unmeasurable, "leave --measure-staleness out: it needs ghosts that may be stale, and tensor tasks on the ranks"},
	{fully, cannotPush, "choose every:N to push rows every N epochs, or always to push them in each epoch"},
	{fully, servers, "use one server: updates are applied in their order of arrival, which differs between servers"},
	{fully, autoCodec, namedCodec},
	{fully, feedback, "leave +ef out: error feedback needs rows in every epoch"},
	{fully, inFunctions, "choose cpu or cuda: functions need synchronous ranks or bounded asynchrony"},
	{fully, measures, "leave it out: an exact pass needs all ranks synchronously"},
	{fully, preAggregate, "leave it out: this mode stores rows of vertices, not sums"},
	{inexact, bounded, "choose one of the two: intervals in bounded asynchrony use the newest received rows"},
	{samplesRows, preAggregate, "leave --pre-aggregate out: vertices are sampled one by one, but a sum has several"},
	{samplesRows, dynamic, "choose gat or another policy: this attention has no score that masks ghosts outside the sample"},
	{alternates, localEpochs, "choose one of the two: both decide when ranks train alone"},
	{alternates, noGradients, "leave gradients=no out: epochs with ghosts are exact"},
	{computes, receives, "leave --recompute-ghosts out: it needs synchronous ranks whose epochs use all ghosts"},
	{computesPart, inexact, "round N to a whole number: the received rows of its last layer are never stale"},
	{computesPart, onGPUs, "round N to a whole number: a GPU computes all of a layer's ghosts, or none"},
	{mixed, oneKind, "leave --layer-kinds out: vertices are sampled for one kind of layer"},
	{sampled, measures, "leave --measure-staleness out: batches of this kind have no stale rows"},
	{sampled, asynchronous, pipeBatches},
	{sampled, inexact, "leave --refresh out: a batch uses only the rows of its own step"},
	{sampled, localEpochs, "leave --local-epochs out: ranks synchronise in every step"},
	{sampled, noGathers, "choose gcn, sage, gin or gat: this network has no neighbours to sample"},
	{sampled, maxima, "choose sage: mini-batches support only sums along edges"},
	{sampled, format, "leave --batch format=FORMAT out: there is no history"},
	{sampled, recomputes, "leave --recompute out, and use smaller batches"},
	{sampled, notCPU, "leave --tensor out"},
	{sampled, autoCodec, batchCodec},
	{histories, bounded, pipeBatches},
	{histories, inexact, "leave --refresh out: rows outside a batch come from the history"},
	{variates, noVariates,
		"choose one of ${variates_networks} with a layer that gathers hidden rows (gcn: two layers or more), or history:N"},
	{variates, formats, "leave both at float32, or choose history:N"},
	{histories, noHistory, "choose gcn, sage, gin, gcnii or appnp, which gather the unchanged rows of the layer before, or neighbor:D,D"},
	{histories, inputDropout, "leave it out: the input layer's ÂX is computed once, for all batches"},
	{histories, cachesNone, "leave --cache-input out: batches share the input layer's ÂX"},
	{histories, appliesIn, "leave --order out: the history stores rows before the product with the weights"},
	{histories, notCPU, "leave --tensor out"},
	{histories, autoCodec, batchCodec},
	{inexact, autoCodec, namedCodec},
	{alone, cachesInput, "leave --cache-input out: evaluations gather along more edges than training does"},

	{localEpochs, asynchronous, "choose one of the two: asynchronous ranks have no common end of a round"},
	{corrects, noRounds, "set --local-epochs to the number of epochs between two corrections"},
	{corrects, exact, "choose --refresh never, or another policy with inexact gradients"},
	{corrects, inFunctions, "leave one of the two out: a task is identified by its epoch, and a correction has the epoch of its round"},
	{measuresWithin, localEpochs,
		"use a multiple of --local-epochs: within a round each rank has its own weights, and there is no exact gradient"},
	{correctBatch, noCorrection, "set --local-epochs correction=N to the number of steps"},

	{sandboxed, notLocal, "set --lambda local: AWS Lambda has its own limits"},
	{lambdaArch, lambdaLocal, "leave --lambda arch=ARCH out: local functions run on this machine's architecture"},
	{inFunctions, openBLAS, "choose another --kernel: the function is built without OpenBLAS"},

	{delayBound, notFree, "set --mode free"},
	{staleness, notBounded, "set --mode async"},
	{lingers, notBounded, "set --mode async: in other modes a rank waits for all rows that it needs"},
	{bounded, autoCodec, "name the codec: the epoch times of single intervals do not show the fastest codec"},
	{bounded, feedback, "leave +ef out: an interval may send its rows again before the next epoch"},
}, gpuConflicts, linkConflicts, edgeConflicts)

// refuse returns a fault for the first conflict of a list whose facts both hold.
func (s situation) refuse(op string, list []conflict) error {
	for _, c := range list {
		if c.a.holds(s) && c.b.holds(s) {
			return fault.New(fault.Usage, op, "", "%s with %s", c.a.show(s), c.b.show(s)).Then("%s", Expand(c.remedy))
		}
	}
	return nil
}

// show returns the flags of a fact with their values.
func (f fact) show(s situation) string {
	text := ""
	for option := range strings.FieldsSeq(f.flags) {
		p, _ := PartOf(option)
		word := Spell(option, s.value(option))
		if more, same := strings.CutPrefix(word, "--"+p.Flag+" "); same && strings.Contains(text, "--"+p.Flag+" ") {
			text += "," + more
		} else {
			text += " " + word
		}
	}
	return strings.TrimSpace(cmp.Or(text, f.name))
}
