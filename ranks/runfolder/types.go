package runfolder

import "time"

// Epoch is a line of metrics.jsonl. Accuracies and the validation loss belong to the weights at the
// start of the epoch, the loss to its training pass. Accuracies are fractions. If Metric is set, they are values of that metric instead.
// Accuracies and the validation loss are absent in epochs without an evaluation. All values are
// finite: the epoch in which a run diverges has no line.
type Epoch struct {
	Epoch             int                `json:"epoch"`              // 1 is the first
	Loss              float64            `json:"loss"`               // mean cross entropy over the training vertices
	ValLoss           *float64           `json:"val_loss,omitempty"` // the same over the validation vertices
	TrainAcc          *float64           `json:"train_acc,omitempty"`
	ValAcc            *float64           `json:"val_acc,omitempty"`
	TestAcc           *float64           `json:"test_acc,omitempty"`
	ValMetrics        map[string]float64 `json:"val_metrics,omitempty"`        // the metric of --monitor, over the validation vertices
	Metric            string             `json:"metric,omitempty"`             // metric in place of accuracy: micro_f1, r2, roc_auc
	Codec             string             `json:"codec,omitempty"`              // the codec of the epoch, if the choice is automatic
	Refresh           string             `json:"refresh,omitempty"`            // always or never, if the choice is automatic
	Seconds           float64            `json:"seconds"`                      // without evaluation
	Time              time.Time          `json:"time,omitzero"`                // when the line was written
	Elapsed           float64            `json:"elapsed"`                      // seconds of the run so far, including the time before a checkpoint
	EvalSeconds       float64            `json:"eval_seconds"`                 // of a separate forward pass, and of measurements
	TaskSeconds       map[string]float64 `json:"task_seconds"`                 // by task: mean over the workers of a rank, maximum over ranks
	WaitSeconds       float64            `json:"wait_seconds"`                 // idle time, waiting for other ranks: the same mean and maximum
	FetchWaitSeconds  float64            `json:"fetch_wait_seconds,omitempty"` // waiting for files (--memory): the same mean and maximum
	DiskBytesRead     int64              `json:"disk_bytes_read,omitempty"`    // of the process that read most since the previous line, evaluations included
	DiskBytesWritten  int64              `json:"disk_bytes_written,omitempty"` // the same
	GhostBytesRaw     int64              `json:"ghost_bytes_raw"`
	GhostBytesSent    int64              `json:"ghost_bytes_sent"`
	PairBytes         int64              `json:"pair_bytes,omitempty"`        // received rows of the ends of pairs, in link prediction
	PeakRSSBytes      int64              `json:"peak_rss_bytes,omitempty"`    // of the largest rank so far, in synchronous training
	Staleness         *Staleness         `json:"staleness,omitempty"`         // nil: not measured
	Late              *Late              `json:"late,omitempty"`              // in bounded asynchrony
	PredictSeconds    float64            `json:"predict_seconds,omitempty"`   // of the rank that predicts ghost rows for longest
	PredictBytes      int64              `json:"predict_bytes,omitempty"`     // memory of predictions of the largest rank
	Predictions       int64              `json:"predictions,omitempty"`       // of a layer and age, on all ranks
	PredictFallbacks  int64              `json:"predict_fallbacks,omitempty"` // stale rows in place of a prediction
	LambdaInvocations int64              `json:"lambda_invocations"`
	LambdaGBSeconds   float64            `json:"lambda_gb_seconds"` // charged for invocations that ended in the epoch
	LambdaUSD         float64            `json:"lambda_usd"`        // of the run's invocations so far, including the time before a checkpoint
	CostUSD           float64            `json:"cost_usd"`          // LambdaUSD and, with Config.Instance, the cost of the hosts so far
}

// Disk has the sums of an epoch's FetchWaitSeconds, DiskBytesRead and DiskBytesWritten over all epochs.
type Disk struct {
	FetchWaitSeconds float64 `json:"fetch_wait_seconds"`
	Share            float64 `json:"fetch_wait_share"` // of the seconds of epochs
	DiskBytesRead    int64   `json:"disk_bytes_read"`
	DiskBytesWritten int64   `json:"disk_bytes_written"`
	ReadMBPerSecond  float64 `json:"disk_read_mb_per_second"` // during epochs and their evaluations
}

// Late counts the use of stale data in an epoch of bounded asynchrony: fractions of the
// intervals on all ranks, and of their forward and backward gathers.
type Late struct {
	Weights float64 `json:"weights"` // trained with an older version of the weights
	Gathers float64 `json:"gathers"` // read a row or a gradient of an older epoch
}

// Staleness is the distance of the used ghost rows from the ghost rows of the same epoch, and the
// distance of the gradient from the exact gradient with the same weights.
type Staleness struct {
	Layers        []LayerStaleness `json:"layers"`
	GradientError float64          `json:"gradient_error"` // ‖g̃ - g‖ / ‖g‖ over all weights
	GradientNorm  float64          `json:"gradient_norm"`  // ‖g‖
}

// LayerStaleness is the distance for the ghost rows of one layer, over all ranks. H are the
// rows of the epoch, and H̃ the rows that were used.
type LayerStaleness struct {
	Layer      int     `json:"layer"`      // 1 is the first
	Difference float64 `json:"difference"` // ‖H - H̃‖, a Frobenius norm
	Relative   float64 `json:"relative"`   // ‖H - H̃‖ / ‖H‖
	// StaleDifference and StaleRelative are the same for the received rows, if H̃ is predicted.
	StaleDifference float64  `json:"stale_difference,omitempty"`
	StaleRelative   *float64 `json:"stale_relative,omitempty"`

	Ghosts  int64   `json:"ghosts"`   // number of rows used; 0: the layer has none
	MeanAge float64 `json:"mean_age"` // epochs
	MaxAge  int     `json:"max_age"`
}

// Most returns the maximal relative staleness of a layer.
func (s *Staleness) Most() (relative float64) {
	for _, l := range s.Layers {
		relative = max(relative, l.Relative)
	}
	return relative
}

// Functions has the invocations of a run, over all epochs and evaluations.
type Functions struct {
	LambdaInvocations     int64   `json:"lambda_invocations"`       // started
	LambdaAgain           int64   `json:"lambda_again"`             // attempts after the first attempt of a task
	LambdaBytesSent       int64   `json:"lambda_bytes_sent"`        // of tasks, for each attempt
	LambdaBytesReceived   int64   `json:"lambda_bytes_received"`    // of results, used or not
	LambdaWasted          int64   `json:"lambda_wasted"`            // charged invocations that failed or were too late
	LambdaGBSeconds       float64 `json:"lambda_gb_seconds"`        // charged
	LambdaWastedGBSeconds float64 `json:"lambda_wasted_gb_seconds"` // charged for wasted invocations
	LambdaUSD             float64 `json:"lambda_usd"`
}

// RankReport has the final statistics of one rank, or of one of its parts.
type RankReport struct {
	Rank     int    `json:"rank"`
	Part     *int   `json:"part,omitempty"` // if ranks carry several parts
	Role     string `json:"role"`           // "graph" or "server"
	Host     string `json:"host"`
	Vertices int64  `json:"vertices"`
	Ghosts   int64  `json:"ghosts"`
	Edges    int64  `json:"edges"`
	// RowsTo is the number of rows, including sums, that the rank sends to each graph rank in an
	// exchange of training.
	RowsTo       []int64 `json:"rows_to,omitempty"`
	PeakRSSBytes int64   `json:"peak_rss_bytes"`
	ArrayBytes   int64   `json:"array_bytes"` // peak of arrays outside the heap
	// ScratchBytes is the size of the scratch file (--memory scratch=DIR). The next fields are the bytes that the
	// rank's process has read from and written to disks.
	ScratchBytes     int64 `json:"scratch_bytes,omitempty"`
	DiskBytesRead    int64 `json:"disk_bytes_read,omitempty"`
	DiskBytesWritten int64 `json:"disk_bytes_written,omitempty"`
	// ActivationBytes are the bytes of activations and their gradients in training. The
	// next field has the bytes without recomputation (--recompute).
	ActivationBytes     int64   `json:"activation_bytes"`
	ActivationBytesKept int64   `json:"activation_bytes_kept"`
	LambdaInvocations   int64   `json:"lambda_invocations,omitempty"`
	LambdaAtOnce        *AtOnce `json:"lambda_at_once,omitempty"`
	StashBytes          int64   `json:"stash_bytes,omitempty"` // peak of a server's weights and gradients in bounded asynchrony
}

// AtOnce is a rank's limit of concurrent invocations: its first, last, minimal and maximal value,
// and the number of its changes.
type AtOnce struct {
	First   int `json:"first"`
	Last    int `json:"last"`
	Least   int `json:"least"`
	Most    int `json:"most"`
	Changes int `json:"changes"`
}

// Diverged is the value of Summary.StoppedBy for a run that ended because its weights diverged.
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
	Ranks     int    `json:"ranks"` // including servers and bridges
	Servers   int    `json:"servers"`
	Bridges   int    `json:"bridges,omitempty"`
	Parts     int    `json:"parts"`   // of the graph
	Threads   int    `json:"threads"` // per rank
	Mode      string `json:"mode"`
	Staleness int    `json:"staleness"`
	Switched  bool   `json:"switched_to_sync"` // the run started in Mode and ended in synchronous training
	Refresh   string `json:"refresh"`          // of ghost rows
	Codec     string `json:"codec"`
	Chosen    string `json:"codec_chosen,omitempty"` // the last codec, if the choice is automatic
	Tensor    string `json:"tensor"`
	Seed      uint64 `json:"seed"`

	Recipe  string   `json:"recipe,omitempty"`
	Changed []string `json:"recipe_changed,omitempty"` // flags that override the recipe
	Taken   any      `json:"chosen,omitempty"`         // settings selected for the graph: flag, value, reason

	Kernel  string            `json:"kernel"`            // the variant of the kernels
	Decided map[string]string `json:"decided,omitempty"` // flags that repeat what measurements or free memory have decided

	Initializer string `json:"initializer"` // of the initial weights, unless they were read from a file

	Epochs             int     `json:"epochs"`     // trained
	StoppedBy          string  `json:"stopped_by"` // "epochs", "patience", "target-acc", "diverged"
	FinalLoss          float64 `json:"final_loss"` // of the last weights; of the last finite evaluation if the run diverged
	FinalTrainAcc      float64 `json:"final_train_acc"`
	FinalValAcc        float64 `json:"final_val_acc"`
	FinalTestAcc       float64 `json:"final_test_acc"`
	BestEpoch          int     `json:"best_epoch"` // the epoch that started from the best weights; Epochs+1: the last weights; 0: none were evaluated
	BestValAcc         float64 `json:"best_val_acc"`
	TestAccAtBestVal   float64 `json:"test_acc_at_best_val"`
	Monitor            string  `json:"monitor"`                 // --monitor, the quantity that selects the best weights
	ClassWeights       string  `json:"class_weights,omitempty"` // --class-weights
	MajorityTestAcc    float64 `json:"majority_test_acc"`       // of the most frequent training class
	Task               string  `json:"trained_for"`
	Metric             string  `json:"metric"`            // the metric in the fields called acc: accuracy; micro_f1 for multi-label; r2 for regression
	Metrics            *Scores `json:"metrics,omitempty"` // of the best weights; absent if not computed (--tensor lambda)
	EpochSecondsMedian float64 `json:"epoch_seconds_median"`
	TotalSeconds       float64 `json:"total_seconds"`
	GhostBytesRaw      int64   `json:"ghost_bytes_raw"`           // over all epochs
	GhostBytesSent     int64   `json:"ghost_bytes_sent"`          // over all epochs
	Predict            string  `json:"predict"`                   // --predict
	PredictSeconds     float64 `json:"predict_seconds,omitempty"` // over all epochs
	PredictBytes       int64   `json:"predict_bytes,omitempty"`   // memory of the largest rank
	Predictions        int64   `json:"predictions,omitempty"`
	PredictFallbacks   int64   `json:"predict_fallbacks,omitempty"`
	Disk               *Disk   `json:"disk,omitempty"` // with --memory or --memory scratch=DIR
	PeakRSSBytes       int64   `json:"peak_rss_bytes"` // of the largest rank
	Functions
	Instance  string       `json:"instance,omitempty"` // instance type of each host, or its dollars per hour
	Hosts     int          `json:"hosts"`              // number of hosts with ranks
	ServerUSD float64      `json:"server_usd"`         // cost of Hosts for TotalSeconds; 0 without Instance
	CostUSD   float64      `json:"cost_usd"`           // ServerUSD + LambdaUSD
	Value     float64      `json:"value"`              // 1/(TotalSeconds × CostUSD); 0 without Instance
	PerRank   []RankReport `json:"per_rank"`
}
