// SPDX-License-Identifier: Apache-2.0

// Go's crypto/mlkem and crypto/ecdh, by the protocol of ../README.md. A share is parsed
// each time; private keys stay parsed. Key generation starts from a seed.
package main

import (
	"bufio"
	"crypto/ecdh"
	"crypto/mlkem"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

const (
	keys          = 64
	sliceNs       = 500_000
	clockOfThread = 3 // CLOCK_THREAD_CPUTIME_ID
)

type key struct{ set, op string }

var (
	ops   = map[key]func() error{}
	order []key
)

func add(op, set string, call func() error) {
	ops[key{set, op}] = call
	order = append(order, key{set, op})
}

func threadNs() int64 {
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockOfThread,
		uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

func slice(call func() error, n int) (float64, error) {
	start := threadNs()
	for range n {
		if err := call(); err != nil {
			return 0, err
		}
	}
	return float64(threadNs()-start) / float64(n), nil
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// Slices of half a millisecond for so long; the median counts.
func measure(call func() error, ms float64) (float64, error) {
	n := 1
	for {
		ns, err := slice(call, n)
		if err != nil {
			return 0, err
		}
		if ns*float64(n) >= sliceNs/2 {
			break
		}
		n *= 2
	}
	var values []float64
	for end := time.Now().Add(time.Duration(ms * 1e6)); ; {
		ns, err := slice(call, n)
		if err != nil {
			return 0, err
		}
		values = append(values, ns)
		if time.Now().After(end) {
			return median(values), nil
		}
	}
}

func cold(call func() error, n int) (float64, error) {
	var values []float64
	for range n {
		time.Sleep(10 * time.Millisecond)
		start := time.Now()
		if err := call(); err != nil {
			return 0, err
		}
		values = append(values, float64(time.Since(start)))
	}
	return median(values), nil
}

func next(at *int) int {
	*at = (*at + 1) % keys
	return *at
}

func add768() error {
	var seeds, shares, cts [keys][]byte
	var private [keys]*mlkem.DecapsulationKey768
	at := 0
	for i := range keys {
		seeds[i] = make([]byte, mlkem.SeedSize)
		rand.Read(seeds[i])
		dk, err := mlkem.NewDecapsulationKey768(seeds[i])
		if err != nil {
			return err
		}
		private[i] = dk
		shares[i] = dk.EncapsulationKey().Bytes()
		_, cts[i] = dk.EncapsulationKey().Encapsulate()
	}
	add("keygen", "768", func() error {
		_, err := mlkem.NewDecapsulationKey768(seeds[next(&at)])
		return err
	})
	add("encaps", "768", func() error {
		ek, err := mlkem.NewEncapsulationKey768(shares[next(&at)])
		if err == nil {
			ek.Encapsulate()
		}
		return err
	})
	add("decaps", "768", func() error {
		i := next(&at)
		_, err := private[i].Decapsulate(cts[i])
		return err
	})
	return nil
}

func add1024() error {
	var seeds, shares, cts [keys][]byte
	var private [keys]*mlkem.DecapsulationKey1024
	at := 0
	for i := range keys {
		seeds[i] = make([]byte, mlkem.SeedSize)
		rand.Read(seeds[i])
		dk, err := mlkem.NewDecapsulationKey1024(seeds[i])
		if err != nil {
			return err
		}
		private[i] = dk
		shares[i] = dk.EncapsulationKey().Bytes()
		_, cts[i] = dk.EncapsulationKey().Encapsulate()
	}
	add("keygen", "1024", func() error {
		_, err := mlkem.NewDecapsulationKey1024(seeds[next(&at)])
		return err
	})
	add("encaps", "1024", func() error {
		ek, err := mlkem.NewEncapsulationKey1024(shares[next(&at)])
		if err == nil {
			ek.Encapsulate()
		}
		return err
	})
	add("decaps", "1024", func() error {
		i := next(&at)
		_, err := private[i].Decapsulate(cts[i])
		return err
	})
	return nil
}

func addX25519() error {
	var raw [keys][]byte
	var private [keys]*ecdh.PrivateKey
	at := 0
	for i := range keys {
		k, err := ecdh.X25519().GenerateKey(rand.Reader)
		if err != nil {
			return err
		}
		private[i] = k
		raw[i] = k.Bytes()
	}
	add("x25519-base", "-", func() error {
		k, err := ecdh.X25519().NewPrivateKey(raw[next(&at)])
		if err == nil {
			k.PublicKey()
		}
		return err
	})
	add("x25519-derive", "-", func() error {
		i := next(&at)
		_, err := private[i].ECDH(private[(i+1)%keys].PublicKey())
		return err
	})
	return nil
}

func check(set string, share []byte) (ct, shared []byte, err error) {
	switch set {
	case "768":
		ek, err := mlkem.NewEncapsulationKey768(share)
		if err != nil {
			return nil, nil, err
		}
		shared, ct = ek.Encapsulate()
	case "1024":
		ek, err := mlkem.NewEncapsulationKey1024(share)
		if err != nil {
			return nil, nil, err
		}
		shared, ct = ek.Encapsulate()
	default:
		return nil, nil, fmt.Errorf("no such set")
	}
	return ct, shared, nil
}

func answer(words []string) (string, error) {
	if len(words) == 3 && words[0] == "check" {
		share, err := hex.DecodeString(words[2])
		if err != nil {
			return "", err
		}
		ct, shared, err := check(words[1], share)
		return fmt.Sprintf("ct %x %x", ct, shared), err
	}
	if len(words) != 4 {
		return "", fmt.Errorf("no such question")
	}
	call, found := ops[key{words[2], words[1]}]
	if !found {
		return "", fmt.Errorf("no such operation")
	}
	amount, err := strconv.ParseFloat(words[3], 64)
	if err != nil {
		return "", err
	}
	ns := 0.0
	if words[0] == "cold" {
		ns, err = cold(call, int(amount))
	} else {
		ns, err = measure(call, amount)
	}
	return fmt.Sprintf("ns %.3f 0", ns), err
}

func main() {
	runtime.LockOSThread()
	for _, add := range []func() error{add768, add1024, addX25519} {
		if err := add(); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	fmt.Println("peer go", runtime.Version())
	for _, k := range order {
		fmt.Println("op", k.op, k.set)
	}
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		text, err := answer(strings.Fields(in.Text()))
		if err != nil {
			text = "error " + err.Error()
		}
		fmt.Println(text)
	}
}
