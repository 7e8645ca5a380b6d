// This module is not published, and no program that is built here imports it.
module github.com/projectcalico/calico/lib/httpmachinery

go 1.24.9
