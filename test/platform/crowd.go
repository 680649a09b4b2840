package platform

import (
	"flag"
	"strconv"
)

// Crowd lets so many tests of a package run side by side, instead of one per processor: tests of outages mostly wait. Whoever
// says -parallel on the command line decides. It is called in TestMain before the tests run.
func Crowd(tests int) error {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if said {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(tests))
}
