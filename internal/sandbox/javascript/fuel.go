package javascript

import (
	"errors"
	"fmt"
	"slices"
)

// Costs in units of fuel. An instance gets fuelAmount of them at once, some hundred microseconds of a processor, and
// one of the host's functions is called each time they are used up.
const (
	fuelAmount = 10_000
	// loopCost is that of one pass of a loop, and of one call of a function.
	loopCost = 1
	// bulkCost is that of an instruction that writes a range of the memory: up to some milliseconds.
	bulkCost = 100
)

// Sections of a module of WebAssembly, by their IDs.
const (
	sectionType   = 1
	sectionImport = 2
	sectionGlobal = 6
	sectionCode   = 10
)

// Instructions, types and kinds of WebAssembly that are read or written here.
const (
	opBlock, opLoop, opIf, opEnd = 0x02, 0x03, 0x04, 0x0b
	opCall, opDrop               = 0x10, 0x1a
	opGlobalGet, opGlobalSet     = 0x23, 0x24
	opConst32, opSubtract        = 0x41, 0x6b
	opLessOrEqual                = 0x4c // signed
	opBulk                       = 0xfc
	typeI32, typeVoid            = 0x7f, 0x40
	kindFunction, kindGlobal     = 0, 3
)

// header is what a module begins with: its magic number and version.
const header = "\x00asm\x01\x00\x00\x00"

// meter returns a module in which every loop and every function pays fuel, from a counter that is a new global
// variable. When it is used up, the module calls a function of the host that it imports, which may end it by a panic.
// Code without loops and calls ends by itself, so every module ends soon after the function of the host panics.
//
// wazero has the same as an option (WithCloseOnContextDone). It leaves the module in every pass of a loop, which costs
// a multiple of the loop.
func meter(module []byte, interrupt string) ([]byte, error) {
	if len(module) < len(header) || string(module[:len(header)]) != header {
		return nil, errors.New("adding the checks of the time: not a module of WebAssembly 1")
	}
	m := &metered{reader: reader{data: module, at: len(header)}, interrupt: interrupt}
	out := []byte(header)
	for m.at < len(module) && m.err == nil {
		id, size := m.byte(), int(m.unsigned())
		if m.err != nil || size > len(module)-m.at {
			break
		}
		section := reader{data: module[m.at : m.at+size]}
		m.at += size
		content := m.section(id, &section)
		if m.err == nil {
			m.err = section.err
		}
		out = append(unsigned(append(out, id), len(content)), content...)
	}
	if m.err == nil && (m.at != len(module) || m.check == nil) {
		m.err = errors.New("it is cut off, or has no section of global variables")
	}
	if m.err != nil {
		return nil, fmt.Errorf("adding the checks of the time: %w", m.err)
	}
	return out, nil
}

// metered is a module that is being rewritten.
type metered struct {
	reader

	interrupt string
	results   []int  // of each type, the number of its results; -1 for one with parameters
	globals   int    // that are imported
	call      []byte // calls the function of the host
	counter   int    // the index of the new global variable
	check     []byte // pays for a pass of a loop
}

// section returns the content of a section after the rewriting.
func (m *metered) section(id byte, s *reader) []byte {
	switch id {
	case sectionType:
		for range s.count() {
			s.byte() // a type of a function
			parameters := s.vector()
			m.results = append(m.results, len(s.vector()))
			if len(parameters) > 0 {
				m.results[len(m.results)-1] = -1
			}
		}
	case sectionImport:
		m.imports(s)
	case sectionGlobal:
		return m.addCounter(s)
	case sectionCode:
		return m.code(s)
	}
	return s.data
}

// imports finds the function of the host, and counts the imported globals.
func (m *metered) imports(s *reader) {
	functions := 0
	for range s.count() {
		s.vector()
		name := string(s.vector())
		switch kind := s.byte(); kind {
		case kindFunction:
			of := int(s.unsigned())
			if name == m.interrupt && of < len(m.results) && m.results[of] >= 0 {
				m.call = unsigned([]byte{opCall}, functions)
				m.call = append(m.call, slices.Repeat([]byte{opDrop}, m.results[of])...)
			}
			functions++
		case kindGlobal:
			s.skip(2) //nolint:mnd // its type and whether it changes
			m.globals++
		default:
			s.fail(fmt.Errorf("it imports %q of the kind %d", name, kind))
		}
	}
}

// addCounter returns the section of global variables with the counter.
func (m *metered) addCounter(s *reader) []byte {
	count := s.count()
	if m.call == nil {
		m.err = fmt.Errorf("it does not import the function %q without parameters", m.interrupt)
		return nil
	}
	m.counter = m.globals + count
	pay := m.pay(loopCost)
	get, set := unsigned([]byte{opGlobalGet}, m.counter), unsigned([]byte{opGlobalSet}, m.counter)
	m.check = slices.Concat(pay, get, []byte{opConst32, 0, opLessOrEqual, opIf, typeVoid},
		signed([]byte{opConst32}, fuelAmount), set, m.call, []byte{opEnd})
	content := append(unsigned(nil, count+1), s.data[s.at:]...)
	content = append(content, typeI32, 1)
	return append(signed(append(content, opConst32), fuelAmount), opEnd)
}

// pay returns instructions that pay.
func (m *metered) pay(cost int) []byte {
	pay := signed(append(unsigned([]byte{opGlobalGet}, m.counter), opConst32), cost)
	return unsigned(append(pay, opSubtract, opGlobalSet), m.counter)
}

// code returns the section of the code of functions, with their checks.
func (m *metered) code(s *reader) []byte {
	if m.check == nil {
		return nil
	}
	bulk := m.pay(bulkCost)
	count := s.count()
	out := unsigned(nil, count)
	for range count {
		body := reader{data: s.vector()}
		for range body.count() { // its local variables
			body.unsigned()
			body.byte()
		}
		metered := append(slices.Clone(body.data[:body.at]), m.check...)
		for body.at < len(body.data) && body.err == nil {
			start := body.at
			op := body.byte()
			inner := body.immediates(op)
			if op == opBulk && inner >= 8 && inner <= 11 { // memory.init to memory.fill; data.drop costs nothing more
				metered = append(metered, bulk...)
			}
			metered = append(metered, body.data[start:body.at]...)
			if op == opLoop {
				metered = append(metered, m.check...)
			}
		}
		if s.err == nil {
			s.err = body.err
		}
		out = append(unsigned(out, len(metered)), metered...)
	}
	return out
}

var errCut = errors.New("it is cut off")

// reader reads the binary format of WebAssembly. After the first error it reads zeros.
type reader struct {
	data []byte
	at   int
	err  error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.at = len(r.data)
}

func (r *reader) byte() byte {
	if r.at >= len(r.data) {
		r.fail(errCut)
		return 0
	}
	r.at++
	return r.data[r.at-1]
}

func (r *reader) skip(n int) {
	if n < 0 || n > len(r.data)-r.at {
		r.fail(errCut)
		return
	}
	r.at += n
}

// unsigned reads a number in LEB128. A signed one is as long.
func (r *reader) unsigned() uint64 {
	const bits, more, most = 7, 0x80, 70
	var n uint64
	for shift := 0; ; shift += bits {
		b := r.byte()
		n |= uint64(b&^more) << shift
		if b&more == 0 || shift >= most {
			return n
		}
	}
}

// count reads how many entries follow, each of which has a byte at least.
func (r *reader) count() int {
	n := r.unsigned()
	if n > uint64(len(r.data)-r.at) {
		r.fail(errCut)
		return 0
	}
	return int(n) //nolint:gosec // bounded
}

// vector reads a length and that many bytes.
func (r *reader) vector() []byte {
	n := r.count()
	r.at += n
	return r.data[r.at-n : r.at]
}

// numbers skips numbers in LEB128.
func (r *reader) numbers(count int) {
	for ; count > 0 && r.err == nil; count-- {
		r.unsigned()
	}
}

// immediates skips what follows an instruction, and returns the number of one of those that begin with opBulk.
func (r *reader) immediates(op byte) (inner uint64) {
	switch {
	case op >= opBlock && op <= opIf: // a type, or the index of one
		r.numbers(1)
	case op <= 0x01, op == 0x05, op == opEnd, op == 0x0f, op == opDrop, op == 0x1b, op >= 0x45 && op <= 0xc4, op == 0xd1:
	case op == 0x0c || op == 0x0d: // branches
		r.numbers(1)
	case op == 0x0e: // a table of branches, and its default
		r.numbers(r.count() + 1)
	case op == opCall, op >= 0x20 && op <= 0x26, op == 0xd2, op == 0xd0: // functions, variables, tables
		r.numbers(1)
	case op == 0x11: // an indirect call: type and table
		r.numbers(2)
	case op == 0x1c: // select with types
		r.vector()
	case op >= 0x28 && op <= 0x3e: // loads and stores: alignment and offset
		r.numbers(2)
	case op == 0x3f || op == 0x40: // the size of the memory
		r.byte()
	case op == opConst32 || op == 0x42:
		r.numbers(1)
	case op == 0x43:
		r.skip(4)
	case op == 0x44:
		r.skip(8)
	case op == opBulk:
		inner = r.unsigned()
		r.bulk(inner)
	default:
		r.fail(fmt.Errorf("it has the unknown instruction %#x", op))
	}
	return inner
}

// bulk skips what follows an instruction that begins with opBulk.
func (r *reader) bulk(inner uint64) {
	switch {
	case inner <= 7: // conversions of numbers
	case inner == 8 || inner == 10 || inner == 12 || inner == 14: // init and copy of memory and tables
		r.numbers(2)
	case inner == 9 || inner == 11 || inner == 13 || inner >= 15 && inner <= 17: // drop, fill, size and grow
		r.numbers(1)
	default:
		r.fail(fmt.Errorf("it has the unknown instruction %#x %d", opBulk, inner))
	}
}

// unsigned appends a number in LEB128.
func unsigned(to []byte, n int) []byte {
	const bits, more = 7, 0x80
	for ; n >= more; n >>= bits {
		to = append(to, byte(n)|more)
	}
	return append(to, byte(n))
}

// signed appends a number from 0 on in signed LEB128.
func signed(to []byte, n int) []byte {
	const bits, more, sign = 7, 0x80, 0x40
	for ; n >= sign; n >>= bits {
		to = append(to, byte(n)|more)
	}
	return append(to, byte(n))
}
