package machine
import ("testing";"time";"fmt")
func TestRates(t *testing.T) {
	for _, set := range []string{"go"} {
	l := Measure(set, 1, []int{12,40,256,512}, 100*time.Millisecond)
	fmt.Printf("%s %.1f %.2f\n", set, l.MultiplyAdds/1e9, l.Exponentials/1e9)
	for _, v := range l.Levels { fmt.Print(v.Name, v.Bytes>>10); for _, w := range []int{0,12,40,256,512} { fmt.Printf(" %.1f", v.Reads[w]/1e9) }; fmt.Println() }
	}
}
