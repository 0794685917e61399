module portcullis.test/uploads

go 1.26.0
