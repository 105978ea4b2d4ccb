package spot

// row33 is a row of Bamboo's table 3.3: means of 1,000 simulations of BERT until completion.
type row33 struct {
	probability                                                               float64
	preemptions, interval, lifetime, fatal, nodes, throughput, dollars, value float64
}

var table33 = []row33{
	{0.01, 8.50, 2.08, 15.20, 0.06, 45.18, 87.99, 41.11, 2.10},
	{0.05, 48.15, 0.44, 10.14, 0.23, 43.65, 76.35, 39.73, 1.90},
	{0.10, 99.77, 0.23, 6.71, 0.29, 41.69, 72.12, 37.94, 1.88},
	{0.25, 276.52, 0.10, 3.13, 1.04, 35.80, 60.12, 32.58, 1.82},
	{0.50, 709.83, 0.06, 1.49, 5.98, 26.96, 40.37, 24.53, 1.59},
}

// table34 has the rows of table 3.4: BERT with 3.3 times the depth on demand.
var table34 = []struct{ probability, throughput, dollars, value float64 }{
	{0.01, 54.87, 90.73, 0.60},
	{0.05, 50.66, 87.43, 0.58},
	{0.10, 49.18, 83.23, 0.59},
	{0.25, 40.59, 71.24, 0.57},
	{0.50, 26.24, 53.05, 0.49},
}

// segments are the hourly preemption rates of the trace segments of tables 3.2 and 3.7.
var segments = []float64{0.10, 0.16, 0.33}

// Sizes of BERT's simulated training. The paper does not state the number of samples; it is that of
// the authors' published simulator, and agrees with the preemptions of table 3.3: 8.50
// preemptions at 0.01 × 45.18 per hour are 18.8 hours, in which 87.99 samples per second are 5.96
// million.
const bertSamples = 22_194 * 264

// Depth and relative rate of table 3.4. 8 × 3.06/0.918 is 26.67. The text says that so long a
// pipeline has "poorer partitioning, underutilized resources and inferior performance", without a
// number. The rate is the one number that is fitted to table 3.4.
const (
	longDepth = 26
	longRate  = 0.69
)
