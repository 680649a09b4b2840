package platform

import (
	"flag"
	"strconv"
)

// AllowParallel lets the given number of tests of a package run in parallel, instead of one per processor: tests of outages mostly wait.
// A -parallel flag on the command line takes precedence. TestMain calls it before the tests run.
func AllowParallel(tests int) error {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if said {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(tests))
}
