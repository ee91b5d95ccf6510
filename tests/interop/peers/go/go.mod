module mlkemd.test/tlspeer

go 1.24
