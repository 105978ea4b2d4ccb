package bill_test

import (
	"fmt"

	"siafu/lambda/bill"
)

// Four machines for a quarter of an hour.
func Example() {
	i, err := bill.ParseInstance("c5n.2xlarge")
	if err != nil {
		panic(err)
	}
	usd := i.USD(4, 15*60)
	fmt.Printf("$%.3f, value %.6f\n", usd, bill.Value(15*60, usd))
	// Output: $0.432, value 0.002572
}
