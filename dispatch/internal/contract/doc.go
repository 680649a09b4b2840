// Package contract is what the parts of a dispatcher agree on: names, keys, memos, and what travels between processes and
// the workflow. It decides who a workflow belongs to, and does no I/O.
package contract
