package platform

import "sync"

// Concurrently calls f n times in all, from the given number of goroutines, and returns the first error. A goroutine
// stops at its first error.
func Concurrently(n, callers int, f func() error) error {
	work := make(chan struct{}, n)
	for range n {
		work <- struct{}{}
	}
	close(work)
	failures := make(chan error, callers)
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for range work {
				if err := f(); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	group.Wait()
	select {
	case err := <-failures:
		return err
	default:
		return nil
	}
}
