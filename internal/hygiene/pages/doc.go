// Package pages checks the repository's documentation: that relative links lead to a file and a heading, and that the
// commands which pages tell people to type exist, with their flags.
//
// Like package hygiene, whose findings it returns, it is for tests only. It does not judge what pages say.
package pages
