// Package wire has the names, keys, memos and messages that dispatchers, processes and the store share. It determines
// which dispatcher a workflow belongs to, and does no I/O.
package wire
