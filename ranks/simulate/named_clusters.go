package simulate

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"siafu/internal/fault"
	"siafu/lambda/bill"
)

// namedClusters are the CPU clusters of Dorylus (OSDI'21, table 3).
var namedClusters = map[string]string{
	"reddit-small": "c5.2xlarge:2", "reddit-large": "c5n.2xlarge:12", "amazon": "c5n.2xlarge:8", "friendster": "c5n.4xlarge:32",
	"reddit-small-gat": "c5.2xlarge:10", "amazon-gat": "c5n.2xlarge:12",
}

// shapes are the processors of instances of a size, and rates the cards of a family
// (§7.2: 10 Gbit/s of c5, 25 of c5n).
var (
	shapes = map[string]int{"large": 2, "xlarge": 4, "2xlarge": 8, "4xlarge": 16}
	cards  = map[string]string{"c5": "10gbit", "c5n": "25gbit"}
)

// applyCluster applies the settings of a named cluster that other flags do not set.
func (o *Options) applyCluster() error {
	if o.Cluster == "" {
		return nil
	}
	instance, count, _ := strings.Cut(cmp.Or(namedClusters[o.Cluster], o.Cluster), ":")
	family, size, _ := strings.Cut(instance, ".")
	n, err := strconv.Atoi(count)
	if shapes[size] == 0 || cards[family] == "" || err != nil || n < 1 || n > mostRanks {
		return fault.New(fault.Usage, op, "", "--cluster %q", o.Cluster).
			Then("use one of %s, or INSTANCE:N with at most %d instances of c5 and c5n, large to 4xlarge, such as c5n.2xlarge:8",
				strings.Join(slices.Sorted(maps.Keys(namedClusters)), ", "), mostRanks)
	}
	o.Ranks, o.Workers, o.Rate = cmp.Or(o.Ranks, n), cmp.Or(o.Workers, shapes[size]), cmp.Or(o.Rate, cards[family])
	return nil
}

// hostCost returns the dollars of the named cluster's hosts for some seconds, one host per rank and
// server; 0 without a name.
func (o *Options) hostCost(c *Cluster, seconds float64) float64 {
	instance, _, _ := strings.Cut(cmp.Or(namedClusters[o.Cluster], o.Cluster), ":")
	i, err := bill.ParseInstance(instance)
	if o.Cluster == "" || err != nil {
		return 0
	}
	return i.USD(len(c.Ranks)+c.Servers, seconds)
}
