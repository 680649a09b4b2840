// Package httpmessage converts between the values of `call: http` and HTTP messages: what a request carries, what of a
// response a task gets, and which error a call raises. It does no I/O. Workers send requests by it, and tests of
// documents compute the results of mocked calls by it, so that both agree. Secrets, authentication and redirects are the
// caller's.
package httpmessage
