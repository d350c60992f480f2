package main

import (
	"os"
	"os/exec"
	"testing"
)

func TestEndLeftovers(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("there is no /proc here")
	}
	start := func(mark string) *exec.Cmd {
		cmd := exec.Command("sleep", "60")
		cmd.Env = append(os.Environ(), runMark+"="+mark)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	mine, other := start(t.Name()+"-1"), start(t.Name()+"-12")
	if ended := endLeftovers(t.Name() + "-1"); ended != 1 {
		t.Errorf("%d processes were ended", ended)
	}
	if mine.Wait() == nil {
		t.Error("the leftover ran to its end")
	}
	if err := other.Process.Kill(); err != nil {
		t.Errorf("the other one was ended as well: %v", err)
	}
	_ = other.Wait()
}
