package platform

import (
	"flag"
	"strconv"
	"testing"
)

// MainParallel is [Main] with the given number of tests in parallel, instead of one per processor: most of the time
// they wait. A -parallel flag on the command line takes precedence.
func MainParallel(m *testing.M, tests int, use func(*Suite)) int {
	if err := allowParallel(tests); err != nil {
		panic(err)
	}
	return Main(m, use)
}

func allowParallel(tests int) error {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if said {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(tests))
}
