package runfolder

import "time"

// Epoch is a line of metrics.jsonl. Loss and accuracies are those of the weights at the
// start of the epoch. Accuracies, or the metric that Metric names, are fractions. They and
// the validation loss are absent in epochs without an evaluation. All values are finite:
// the epoch in which a run diverges has no line.
type Epoch struct {
	Epoch             int                `json:"epoch"`              // 1 is the first
	Loss              float64            `json:"loss"`               // mean cross entropy over the training vertices
	ValLoss           *float64           `json:"val_loss,omitempty"` // the same over the validation vertices
	TrainAcc          *float64           `json:"train_acc,omitempty"`
	ValAcc            *float64           `json:"val_acc,omitempty"`
	TestAcc           *float64           `json:"test_acc,omitempty"`
	ValMetrics        map[string]float64 `json:"val_metrics,omitempty"` // the metric that --monitor names, over the validation vertices
	Metric            string             `json:"metric,omitempty"`      // what accuracies are where they are none: micro_f1, r2, roc_auc
	Codec             string             `json:"codec,omitempty"`       // that was being tried or had been chosen, where the choice is automatic
	Refresh           string             `json:"refresh,omitempty"`     // always or never, where the choice is automatic
	Seconds           float64            `json:"seconds"`               // without evaluation
	Time              time.Time          `json:"time,omitzero"`         // when the line was written
	Elapsed           float64            `json:"elapsed"`               // seconds of the run up to then, its parts before a checkpoint included
	EvalSeconds       float64            `json:"eval_seconds"`          // of a separate forward pass, and of measurements
	TaskSeconds       map[string]float64 `json:"task_seconds"`          // by task, the mean over a rank's workers, the slowest rank's
	WaitSeconds       float64            `json:"wait_seconds"`          // without a task, waiting for others; the same
	GhostBytesRaw     int64              `json:"ghost_bytes_raw"`
	GhostBytesSent    int64              `json:"ghost_bytes_sent"`
	PairBytes         int64              `json:"pair_bytes,omitempty"`     // of link prediction, for the ends of pairs
	PeakRSSBytes      int64              `json:"peak_rss_bytes,omitempty"` // of the largest rank's process up to then, in synchronous training
	Staleness         *Staleness         `json:"staleness,omitempty"`      // where it was measured
	Late              *Late              `json:"late,omitempty"`           // in bounded asynchrony
	LambdaInvocations int64              `json:"lambda_invocations"`
	LambdaGBSeconds   float64            `json:"lambda_gb_seconds"` // for which invocations were charged that ended in the epoch
	LambdaUSD         float64            `json:"lambda_usd"`        // of the run's invocations up to then, its parts before a checkpoint included
	CostUSD           float64            `json:"cost_usd"`          // of these and, with Config.Instance, of the run's hosts, likewise
}

// Late counts the use of stale data in an epoch of bounded asynchrony: fractions of the
// intervals on all ranks, and of their forward and backward gathers.
type Late struct {
	Weights float64 `json:"weights"` // trained with an older version of the weights
	Gathers float64 `json:"gathers"` // read a row or a gradient of an older epoch
}

// Staleness is the distance of the ghost rows of training from those of the same epoch, and
// of its gradient from the exact gradient with the same weights.
type Staleness struct {
	Layers        []LayerStaleness `json:"layers"`
	GradientError float64          `json:"gradient_error"` // ‖g̃ - g‖ / ‖g‖ over all weights
}

// LayerStaleness is the distance for the ghost rows of one layer, over all ranks. H are the
// rows of the epoch, and H̃ the rows that were used.
type LayerStaleness struct {
	Layer      int     `json:"layer"`      // 1 is the first
	Difference float64 `json:"difference"` // ‖H - H̃‖, a Frobenius norm
	Relative   float64 `json:"relative"`   // the same by ‖H‖
	Ghosts     int64   `json:"ghosts"`     // rows that were used, 0: none are
	MeanAge    float64 `json:"mean_age"`   // epochs
	MaxAge     int     `json:"max_age"`
}

// Most returns the relative staleness of the layer where it is greatest.
func (s *Staleness) Most() (relative float64) {
	for _, l := range s.Layers {
		relative = max(relative, l.Relative)
	}
	return relative
}

// Functions has the invocations of a run, over all epochs and evaluations.
type Functions struct {
	LambdaInvocations     int64   `json:"lambda_invocations"`       // begun
	LambdaAgain           int64   `json:"lambda_again"`             // of these, attempts after the first of their task
	LambdaBytesSent       int64   `json:"lambda_bytes_sent"`        // of tasks, each attempt's
	LambdaBytesReceived   int64   `json:"lambda_bytes_received"`    // of results, used or not
	LambdaWasted          int64   `json:"lambda_wasted"`            // charged, and came to nothing or too late
	LambdaGBSeconds       float64 `json:"lambda_gb_seconds"`        // charged
	LambdaWastedGBSeconds float64 `json:"lambda_wasted_gb_seconds"` // of these, of what was wasted
	LambdaUSD             float64 `json:"lambda_usd"`
}

// RankReport has the final statistics of one rank, or of one of its parts.
type RankReport struct {
	Rank     int    `json:"rank"`
	Part     *int   `json:"part,omitempty"` // where ranks carry several
	Role     string `json:"role"`           // "graph" or "server"
	Host     string `json:"host"`
	Vertices int64  `json:"vertices"`
	Ghosts   int64  `json:"ghosts"`
	Edges    int64  `json:"edges"`
	// Rows that it sends each graph rank in an exchange of training, sums included.
	RowsTo       []int64 `json:"rows_to,omitempty"`
	PeakRSSBytes int64   `json:"peak_rss_bytes"`
	ArrayBytes   int64   `json:"array_bytes"` // arrays outside the heap, at their most
	// ActivationBytes are the bytes of activations and their gradients in training. The
	// next field has the bytes without recomputation (--recompute).
	ActivationBytes     int64   `json:"activation_bytes"`
	ActivationBytesKept int64   `json:"activation_bytes_kept"`
	LambdaInvocations   int64   `json:"lambda_invocations,omitempty"`
	LambdaAtOnce        *AtOnce `json:"lambda_at_once,omitempty"`
	StashBytes          int64   `json:"stash_bytes,omitempty"` // weights and gradients that a server in bounded asynchrony kept at its peak
}

// AtOnce is how many invocations a rank was ready to have under way at a time: at
// first, at last, at least and at most, and how often that changed.
type AtOnce struct {
	First   int `json:"first"`
	Last    int `json:"last"`
	Least   int `json:"least"`
	Most    int `json:"most"`
	Changes int `json:"changes"`
}

// Diverged is the value of Summary.StoppedBy for a run whose weights diverged after its
// last epoch.
const Diverged = "diverged"

// Summary is summary.json.
type Summary struct {
	Version   string `json:"version"`
	Dataset   string `json:"dataset"`
	Synthetic bool   `json:"synthetic"`
	Model     string `json:"model"`
	Layers    int    `json:"layers"`
	Hidden    int    `json:"hidden"`
	World     string `json:"world"` // "in-process" or "mpi"
	Ranks     int    `json:"ranks"` // all of them
	Servers   int    `json:"servers"`
	Bridges   int    `json:"bridges,omitempty"`
	Parts     int    `json:"parts"`   // of the graph, which the other ranks carry
	Threads   int    `json:"threads"` // a rank
	Mode      string `json:"mode"`
	Staleness int    `json:"staleness"`
	Switched  bool   `json:"switched_to_sync"` // from Mode
	Refresh   string `json:"refresh"`          // of ghosts
	Codec     string `json:"codec"`
	Chosen    string `json:"codec_chosen,omitempty"` // with an automatic choice: what it was at the end
	Tensor    string `json:"tensor"`
	Seed      uint64 `json:"seed"`

	Recipe  string   `json:"recipe,omitempty"`
	Changed []string `json:"recipe_changed,omitempty"` // flags that were given in place of the recipe's
	Taken   any      `json:"chosen,omitempty"`         // settings taken for the graph: flag, value, why

	Initializer string `json:"initializer"` // of the first weights, unless they came from a file

	Epochs             int     `json:"epochs"`     // trained
	StoppedBy          string  `json:"stopped_by"` // "epochs", "patience", "target-acc", "diverged"
	FinalLoss          float64 `json:"final_loss"` // of the last weights; where a run has diverged, of the last that were evaluated and gave numbers
	FinalTrainAcc      float64 `json:"final_train_acc"`
	FinalValAcc        float64 `json:"final_val_acc"`
	FinalTestAcc       float64 `json:"final_test_acc"`
	BestEpoch          int     `json:"best_epoch"` // whose starting weights were best; Epochs+1: the last weights; 0: the run diverged before any were evaluated
	BestValAcc         float64 `json:"best_val_acc"`
	TestAccAtBestVal   float64 `json:"test_acc_at_best_val"`
	Monitor            string  `json:"monitor"`                 // what has chosen the best weights: --monitor
	ClassWeights       string  `json:"class_weights,omitempty"` // --class-weights
	MajorityTestAcc    float64 `json:"majority_test_acc"`       // of the most frequent training class
	Task               string  `json:"trained_for"`
	Metric             string  `json:"metric"`            // what the numbers above called acc are: accuracy; micro_f1 with multilabel; r2 with regression
	Metrics            *Scores `json:"metrics,omitempty"` // of the best weights; absent where a run could not find them (--tensor lambda)
	EpochSecondsMedian float64 `json:"epoch_seconds_median"`
	TotalSeconds       float64 `json:"total_seconds"`
	GhostBytesRaw      int64   `json:"ghost_bytes_raw"`  // over all epochs
	GhostBytesSent     int64   `json:"ghost_bytes_sent"` // over all epochs
	PeakRSSBytes       int64   `json:"peak_rss_bytes"`   // of the largest rank
	Functions
	Instance  string       `json:"instance,omitempty"` // what each host is, or its dollars an hour
	Hosts     int          `json:"hosts"`              // that ranks were on
	ServerUSD float64      `json:"server_usd"`         // of Hosts for TotalSeconds; 0 without Instance
	CostUSD   float64      `json:"cost_usd"`           // ServerUSD and LambdaUSD
	Value     float64      `json:"value"`              // 1/(TotalSeconds × CostUSD); 0 without Instance
	PerRank   []RankReport `json:"per_rank"`
}
