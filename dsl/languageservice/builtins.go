package languageservice

import (
	"fmt"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// variableDoc returns what a variable of expressions is.
func variableDoc(name string) string {
	switch name {
	case "context":
		return "What tasks have put aside with `export`."
	case "input":
		return "The input of the task, after `input.from`."
	case "output":
		return "The output of the task, after `output.as`."
	case "secrets":
		return "Secrets by name. They can be named in what a call sends; no expression can read them."
	case "authorization":
		return "The scheme of the authentication of the call: `.scheme`."
	case "task":
		return "The task: `name`, `reference`, `definition`, `input`, `output`, `startedAt`."
	case "workflow":
		return "The run: `id`, `definition`, `input`, `startedAt`."
	case "runtime":
		return "The runtime: `name`, `version`, `metadata`."
	}
	return "A variable of the loop or the catch around the task."
}

// builtins returns the functions of expressions and the formats of texts, by name.
func builtins() []Completion {
	documented := map[string]string{}
	var out []Completion
	for line := range strings.Lines(builtinDocs) {
		name, doc, _ := strings.Cut(strings.TrimSpace(line), ": ")
		documented[name] = doc
		if strings.HasPrefix(name, "@") {
			out = append(out, builtin(name, name, doc))
		}
	}
	forms := map[string][]string{}
	var names []string
	for _, f := range jq.Builtins() {
		name, arity, _ := strings.Cut(f, "/")
		if forms[name] == nil {
			names = append(names, name)
		}
		form := name
		if n := int(arity[0] - '0'); n > 0 {
			form += "(" + strings.Join([]string{"a", "b", "c"}[:n], "; ") + ")"
		}
		forms[name] = append(forms[name], form)
	}
	for _, name := range names {
		out = append(out, builtin(name, strings.Join(forms[name], ", "), documented[name]))
	}
	return out
}

func builtin(name, forms, doc string) Completion {
	return Completion{Label: name, Kind: CompleteFunction, Detail: forms, Doc: fmt.Sprintf("`%s`\n\n%s", forms, doc),
		Edit: Edit{Text: name}}
}

// builtinDocs has one line for each function and format of expressions.
const builtinDocs = `@base64: The text, encoded in base64.
@base64d: The text that is encoded in base64.
@csv: The list as a line of CSV.
@html: The text with &, <, >, ' and " escaped for HTML.
@json: The value as JSON.
@sh: The text, quoted for a shell.
@text: The value as a text, as tostring gives it.
@tsv: The list as a line of tab-separated values.
@uri: The text, escaped for a URI.
@urid: The text that is escaped for a URI.
IN: Whether the input is among the outputs of an expression.
INDEX: An object of the outputs of an expression, by a key of each.
abs: The absolute value.
acos: The arc cosine.
acosh: The inverse hyperbolic cosine.
add: The sum of a list: of numbers, or texts, lists or objects joined.
all: Whether all elements are true, or meet a condition.
any: Whether an element is true, or meets a condition.
arrays: The input if it is a list, otherwise nothing.
ascii_downcase: The text with the letters A to Z in lower case.
ascii_upcase: The text with the letters a to z in upper case.
asin: The arc sine.
asinh: The inverse hyperbolic sine.
atan: The arc tangent.
atan2: The angle of a point.
atanh: The inverse hyperbolic tangent.
booleans: The input if it is true or false, otherwise nothing.
bsearch: The index of a value in a sorted list; negative if it is not there.
capture: An object of the named groups of a regular expression.
cbrt: The cube root.
ceil: The smallest integer that is not less.
combinations: All combinations of the elements of lists.
contains: Whether the input has all parts of a value.
copysign: A number with the sign of another.
cos: The cosine.
cosh: The hyperbolic cosine.
date: The time in seconds as a date and time of ISO 8601, as todate gives it.
dateadd: A time, with seconds added.
datesub: A time, with seconds subtracted.
del: The input without what a path selects.
delpaths: The input without what a list of paths selects.
drem: The remainder, as remainder gives it.
empty: Nothing: the expression has no result here.
endswith: Whether the text ends with a text.
erf: The error function.
erfc: The complement of the error function.
error: Fails, with the input or a message.
exp: e to the power of the input.
exp10: 10 to the power of the input.
exp2: 2 to the power of the input.
explode: The characters of a text as numbers.
expm1: e to the power of the input, minus 1.
fabs: The absolute value.
fdim: The positive difference.
finites: The input if it is a finite number, otherwise nothing.
first: The first element, or the first output of an expression.
flatten: The list without inner lists, to a depth.
floor: The largest integer that is not greater.
fma: The product of two numbers plus a third.
fmax: The larger one of two numbers.
fmin: The smaller one of two numbers.
fmod: The remainder of a division, with the sign of the dividend.
frexp: The fraction and the exponent of a number.
from_entries: An object of a list of {key, value} or {name, value}.
fromdate: A date and time of ISO 8601 as seconds, with fractions.
fromdateiso8601: A date and time of ISO 8601 as seconds.
fromjson: The value of a text in JSON.
gamma: The logarithm of the gamma function.
getpath: The value at a path, a list of keys and indexes.
gmtime: The parts of a time in seconds, in UTC.
group_by: Lists of the elements that have the same value of an expression.
gsub: The text with all matches of a regular expression replaced.
has: Whether the object has a key, or the list an index.
hypot: The length of a vector.
implode: The text of a list of numbers of characters.
in: Whether the input is a key of an object.
index: The index of the first occurrence of a text or a value.
indices: The indexes of all occurrences of a text or a value.
infinite: Infinity; as a result the largest number.
inside: Whether a value has all parts of the input.
isempty: Whether an expression has no output.
isfinite: Whether the number is finite.
isinfinite: Whether the number is infinite.
isnan: Whether the input is not a number.
isnormal: Whether the number is normal.
iterables: The input if it is a list or an object, otherwise nothing.
j0: The Bessel function of the first kind and order 0.
j1: The Bessel function of the first kind and order 1.
jn: The Bessel function of the first kind.
join: The text of a list of texts, with a text between them.
keys: The keys of an object, sorted, or the indexes of a list.
keys_unsorted: The keys of an object; here they are sorted.
last: The last element, or the last output of an expression.
ldexp: A number times 2 to a power.
leaf_paths: The paths of all values that are no lists and objects.
length: The number of elements, members or characters; of a number its absolute value.
lgamma: The logarithm of the gamma function.
limit: The first outputs of an expression.
localtime: The parts of a time in seconds; the local time zone is UTC.
log: The natural logarithm.
log10: The logarithm to base 10.
log1p: The natural logarithm of 1 plus the input.
log2: The logarithm to base 2.
logb: The exponent of a number.
ltrim: The text without space at its beginning.
ltrimstr: The text without a text at its beginning.
map: The list of the outputs of an expression for each element.
map_values: The object or list with the output of an expression in place of each value.
match: The matches of a regular expression, with their positions.
max: The largest element.
max_by: The element with the largest value of an expression.
min: The smallest element.
min_by: The element with the smallest value of an expression.
mktime: The seconds of the parts of a time.
modf: The fraction and the integer of a number.
nan: Not a number; as a result null.
nearbyint: The nearest integer.
nextafter: The next number in the direction of another.
nexttoward: The next number in the direction of another.
normals: The input if it is a normal number, otherwise nothing.
not: The opposite of a condition.
now: The time of the run in seconds, as its history has it.
nth: The element at an index, or that output of an expression.
nulls: The input if it is null, otherwise nothing.
numbers: The input if it is a number, otherwise nothing.
objects: The input if it is an object, otherwise nothing.
path: The path that an expression selects.
paths: The paths of all values.
pick: The input with only what paths select.
pow: A number to the power of another.
range: The numbers from one to another, without that.
recurse: The input and all values in it.
remainder: The remainder of a division.
repeat: The outputs of an expression, applied again and again.
reverse: The list or text in reverse order.
rindex: The index of the last occurrence of a text or a value.
rint: The nearest integer.
round: The nearest integer, halves away from zero.
rtrim: The text without space at its end.
rtrimstr: The text without a text at its end.
scalars: The input if it is no list and no object, otherwise nothing.
scalb: A number times 2 to a power.
scalbln: A number times 2 to a power.
scan: All matches of a regular expression, as texts.
select: The input if a condition holds, otherwise nothing.
setpath: The input with a value at a path.
significand: The significand of a number.
sin: The sine.
sinh: The hyperbolic sine.
skip: The outputs of an expression without the first ones.
sort: The list, sorted.
sort_by: The list, sorted by the value of an expression.
split: The list of the parts of a text between a text, or between the matches of a regular expression.
splits: The parts of a text between the matches of a regular expression.
sqrt: The square root.
startswith: Whether the text begins with a text.
strflocaltime: A time as a text in a format; the local time zone is UTC.
strftime: A time as a text in a format, such as "%Y-%m-%d".
strings: The input if it is a text, otherwise nothing.
strptime: The parts of the time in a text with a format.
sub: The text with the first match of a regular expression replaced.
tan: The tangent.
tanh: The hyperbolic tangent.
test: Whether a regular expression matches.
tgamma: The gamma function.
to_entries: A list of {key, value} of an object.
toarray: The input if it is a list, otherwise a list of it.
toboolean: true or false of a text.
todate: The time in seconds as a date and time of ISO 8601.
todateiso8601: The time in seconds as a date and time of ISO 8601.
tojson: The value as JSON.
tonumber: The number of a text.
tostring: The value as a text: a text as it is, other values as JSON.
transpose: The columns of a list of rows.
trim: The text without space at its ends.
trimstr: The text without a text at its ends.
trunc: The number without its fraction.
type: The type: "null", "boolean", "number", "string", "array" or "object".
unique: The list, sorted and without duplicates.
unique_by: The list without elements of the same value of an expression, sorted by it.
until: The result of applying an expression until a condition holds.
utf8bytelength: The number of bytes of a text.
values: The input if it is not null, otherwise nothing.
walk: The value with an expression applied to each of its parts.
while: The outputs of an expression, applied again while a condition holds.
with_entries: The object with an expression applied to each {key, value}.
y0: The Bessel function of the second kind and order 0.
y1: The Bessel function of the second kind and order 1.
yn: The Bessel function of the second kind.
`
