package download_test

import (
	"context"
	"fmt"

	"siafu/graph/download"
)

func ExampleGet() {
	// Names lists what there is; a network is needed for the rest.
	_, err := download.Get(context.Background(), "arxiv", download.Options{Dst: "data/arxiv"})
	fmt.Println(err)
	// Output: download: no dataset "arxiv"; use one of cora, citeseer, pubmed, ogbn-arxiv, ogbn-products, ogbn-papers100m
}
