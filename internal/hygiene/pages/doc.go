// Package pages checks the repository's documentation: that relative links lead to a file and a heading, that pages
// begin with their readers and what they answer, that the commands in pages exist, with their flags, that tables
// have the columns which the commands print, that settings exist, that the page of errors has the titles which errors
// have, and that the workflows and configurations which pages show are valid.
//
// Like package hygiene, whose violations it returns, it is for tests only. It does not check the statements of pages,
// and its callers validate workflows and configurations.
package pages
