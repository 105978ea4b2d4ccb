package cli

import (
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// shop is a company of customers who recommend it to each other, mostly within
// their class.
type shop struct {
	r     *rand.Rand
	class []int
	of    map[int][]int // customers of each class
}

var (
	shopClasses = []string{"fraud", "lapsed", "loyal", "new"}
	shopCities  = []string{"Bergen", "Köln", "Oslo", "Paris, Texas", "São Paulo"}
)

func newShop(customers int) *shop {
	s := &shop{rand.New(rand.NewPCG(1, 2)), nil, map[int][]int{}}
	for i := range customers {
		c := s.r.IntN(len(shopClasses))
		s.class, s.of[c] = append(s.class, c), append(s.of[c], i)
	}
	return s
}

func customer(i int) string { return fmt.Sprintf("customer-%06d", i*7919%1000003) }

// write writes the tables of the first n customers. Visits and, in four of ten, the
// city tell of the class; of income and age nothing does. Every twentieth of the
// first `labelled` has no label, and none beyond; of 0 there is no column of labels.
// Customers recommend those of the first `known` alone by chance.
func (s *shop) write(t *testing.T, dir string, n, known, labelled int) {
	t.Helper()
	table := func(name string, fill func(write func(...any))) {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		w := csv.NewWriter(f)
		fill(func(cells ...any) {
			row := make([]string, len(cells))
			for i, c := range cells {
				row[i] = fmt.Sprint(c)
			}
			w.Write(row)
		})
		if w.Flush(); w.Error() != nil {
			t.Fatal(w.Error())
		}
	}
	s.r = rand.New(rand.NewPCG(3, 4))
	table("nodes.csv", func(write func(...any)) {
		head := []any{"id", "income", "age", "visits", "city", "name", "label"}
		columns := len(head)
		if labelled == 0 {
			columns--
		}
		write(head[:columns]...)
		for i := range n {
			c, city, label := s.class[i], s.r.IntN(len(shopCities)), ""
			if s.r.Float64() < 0.4 {
				city = c
			}
			if i < labelled && i%20 > 0 {
				label = shopClasses[c]
			}
			row := []any{customer(i), int(52000 + 14000*s.r.NormFloat64()), int(45 + 12*s.r.NormFloat64()),
				0.7*float64(c) + s.r.NormFloat64(), shopCities[city], fmt.Sprintf("Name \"%d\"", i), label}
			write(row[:columns]...)
		}
	})
	table("edges.csv", func(write func(...any)) {
		write("src", "dst")
		for i := range 4 * n {
			friends := s.of[s.class[i/4]]
			friend := friends[s.r.IntN(len(friends))]
			if s.r.Float64() < 0.4 || friend >= n {
				friend = s.r.IntN(min(n, known))
			}
			write(customer(i/4), customer(friend))
		}
	})
}

// right returns the share of the customers without a label, in a table of predictions on those
// from a number on, to whom it gives their class.
func (s *shop) right(t *testing.T, path string, from, wanted int) float64 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || strings.Join(rows[0], ",") != "id,split,label,prediction,probability,p_fraud,p_lapsed,p_loyal,p_new" {
		t.Fatalf("%v, heading %q", err, rows[0])
	}
	right, all := 0, 0
	for i, row := range rows[1:] {
		if row[0] != customer(from+i) {
			t.Fatalf("row %d is of %s, not of %s", i, row[0], customer(from+i))
		}
		if row[2] == "" {
			if all++; row[3] == shopClasses[s.class[from+i]] {
				right++
			}
		}
	}
	if all != wanted {
		t.Errorf("%d customers without a label are scored, want %d", all, wanted)
	}
	return float64(right) / float64(all)
}

func testAccuracy(t *testing.T, out string) float64 {
	t.Helper()
	m := regexp.MustCompile(`test_at_best_val=(\S+)`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no accuracy in\n%s", out)
	}
	x, _ := strconv.ParseFloat(m[1], 64)
	return x
}

// Five commands import a table of 20,000 customers, train, and predict for them and for 1,000 new
// ones. The new table has no labels, and the model contains its schema, because the first dataset
// was removed. Warnings report an income that is not standardised and edges in one direction.
//
// With seed 1 the accuracy is 0.83 on the test set, 0.84 on customers without a label and 0.86 on
// new ones. If the warnings are ignored it is 0.25, as for random guesses of four classes.
func TestTableOfCustomers(t *testing.T) {
	const old, all = 20000, 21000
	s, dir := newShop(all), t.TempDir()
	tables, later, data, run, grown := filepath.Join(dir, "tables"), filepath.Join(dir, "later"), filepath.Join(dir, "data"),
		filepath.Join(dir, "run"), filepath.Join(dir, "grown")
	os.Mkdir(tables, 0o755)
	os.Mkdir(later, 0o755)
	s.write(t, tables, old, old, old)
	s.write(t, later, all, old, 0)

	must(t, "import", "--from", "csv", tables, data, "--symmetrise", "--standardise")
	accuracy := testAccuracy(t, must(t, "train", data, "--epochs", "30", "--out", run))
	must(t, "predict", run, data, "--csv-classes")
	os.Rename(data, data+".gone")
	must(t, "import", "--from", "csv", later, grown, "--like", run)
	must(t, "predict", run, grown, "--csv-classes", "--new", "--ranks", "2")
	os.Rename(data+".gone", data)

	if found := s.right(t, filepath.Join(run, "predictions", "predictions.csv"), 0, old/20); accuracy < 0.75 || found < 0.75 {
		t.Errorf("%.4f of the test set is right, and %.4f of those without a label", accuracy, found)
	}
	if found := s.right(t, filepath.Join(run, "predictions-grown", "predictions.csv"), old, all-old); found < 0.75 {
		t.Errorf("%.4f of the new customers are right", found)
	}
	must(t, "import", "--from", "csv", tables, filepath.Join(dir, "raw"), "--symmetrise")
	if r := siafu("predict", run, filepath.Join(dir, "raw")); r.code != 65 || !strings.Contains(r.err,
		`column "income" is less 0 and divided by 1, the model's was less 5`) || !strings.Contains(r.err, "--like") {
		t.Errorf("another scaling: exit %d, %s", r.code, r.err)
	}
	if r := siafu("train", grown); r.code != 65 || !strings.Contains(r.err, "no vertex is in the training split") {
		t.Errorf("training without labels: exit %d, %s", r.code, r.err)
	}

	plain := filepath.Join(dir, "plain")
	out := must(t, "import", tables, plain)
	for _, want := range []string{"warning: scales of features differ by a factor of", "(income about", "--standardise", "warning: edges " +
		"are stored in one direction only", "--symmetrise", "dropped column=name", "split=random", "classes=4: fraud, lapsed, loyal, new"} {
		if !strings.Contains(out, want) {
			t.Errorf("import does not say %q:\n%s", want, out)
		}
	}
	if lost := testAccuracy(t, must(t, "train", plain, "--epochs", "30", "--out", filepath.Join(dir, "run2"))); lost > accuracy-0.3 {
		t.Errorf("%.4f as it is, %.4f standardised: nothing to warn of", lost, accuracy)
	}
	if out := must(t, "info", data); !strings.Contains(out, "column income: number, features 0 to 0, less 5") {
		t.Errorf("info does not tell of the columns:\n%s", out)
	}
}
