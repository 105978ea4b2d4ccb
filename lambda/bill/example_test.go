package bill_test

import (
	"fmt"
	"time"

	"siafu/lambda/bill"
)

// Four machines for a quarter of an hour.
func Example() {
	i, err := bill.ParseInstance("c5n.2xlarge")
	if err != nil {
		panic(err)
	}
	b := bill.Bill{Servers: bill.Servers([]string{"n1", "n2", "n3", "n4"}, i, 15*time.Minute)}
	fmt.Printf("$%s, value %.6f\n", b.Total().FloatString(3), bill.Value(15*time.Minute, b.Total()))
	// Output: $0.432, value 0.002572
}
